package fetch

import (
	"net"
	"syscall"
)

// readiness tells when there is something to read on a connection.
type readiness struct {
	raw    syscall.RawConn
	look   func(fd uintptr) bool // there, bound once
	looked bool
}

// readinessOf returns the readiness of c, before anything is read from it; nil if c is no
// connection of the operating system.
func readinessOf(c net.Conn) *readiness {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	r := &readiness{raw: raw}
	r.look = r.there
	return r
}

// await waits until there is something to read, or to say: the deadline has passed, or
// the connection has ended. Whoever reads then is told.
func (c *conn) await() {
	if c.wait != nil {
		c.wait.looked = false
		_ = c.wait.raw.Read(c.wait.look)
	}
}

// there reports whether there is something to read. It is called once, and again when
// that has changed.
func (r *readiness) there(fd uintptr) bool {
	if r.looked {
		return true
	}
	r.looked = true
	return peek(fd)
}
