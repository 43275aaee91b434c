package server

import (
	"net"
	"sync"
)

// listener remembers the connections it accepted, so that they can be cut off
// when a shutdown has waited long enough.
type listener struct {
	net.Listener

	mu struct {
		sync.Mutex
		open map[*conn]struct{}
	}
}

type conn struct {
	net.Conn
	l *listener
}

func newListener(inner net.Listener) *listener {
	l := &listener{Listener: inner}
	l.mu.open = map[*conn]struct{}{}
	return l
}

// Accept is part of net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{inner, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open[c] = struct{}{}
	return c, nil
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.l.mu.Lock()
	delete(c.l.mu.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// cut closes every connection and returns how many there were.
func (l *listener) cut() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.mu.open {
		_ = c.Conn.Close() // whoever used it hears of it
	}
	return len(l.mu.open)
}
