package server

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// answerGrace is how much longer than the request timeout the write of an answer may take, so that
// a client still receives the message of a timeout.
const answerGrace = 2 * time.Second

// requestLimits bound what a client can make a request cost in time and bytes. The library limits
// the time for headers and for a handler, but not the time for a body to arrive or for an answer to
// be read.
type requestLimits struct {
	body  time.Duration // for a body to arrive
	write time.Duration // for the answer to be written, counted from the request
	bytes int64         // of a body
}

// maxQuery is the maximum length of a query, in bytes. Rules read it before authentication, and a
// LIST compares each pod with its selectors.
const maxQuery = 32 << 10

func (l requestLimits) apply(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > maxQuery {
			http.Error(w, fmt.Sprintf("the query has %d bytes, at most %d are allowed: use a shorter selector", len(r.URL.RawQuery), maxQuery), http.StatusRequestURITooLong)
			return
		}
		c := http.NewResponseController(w)
		now := time.Now()
		// Only connections of tests without a network cannot have a deadline.
		_ = c.SetWriteDeadline(now.Add(l.write))
		if r.ContentLength != 0 {
			_ = c.SetReadDeadline(now.Add(l.body))
			r.Body = http.MaxBytesReader(w, r.Body, l.bytes)
		}
		next.ServeHTTP(w, r)
	})
}

// trackingListener remembers the connections it accepted, so that they can be closed when a
// shutdown has waited long enough.
type trackingListener struct {
	net.Listener

	mu struct {
		sync.Mutex
		open map[*trackedConn]struct{}
	}
}

type trackedConn struct {
	net.Conn
	l *trackingListener
}

func newListener(inner net.Listener) *trackingListener {
	l := &trackingListener{Listener: inner}
	l.mu.open = map[*trackedConn]struct{}{}
	return l
}

// Accept implements net.Listener.
func (l *trackingListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &trackedConn{inner, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open[c] = struct{}{}
	return c, nil
}

// Close closes the connection and removes it from the listener.
func (c *trackedConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.mu.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// closeAll closes every connection and returns how many there were.
func (l *trackingListener) closeAll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.mu.open {
		_ = c.Conn.Close() // its reader or writer gets an error
	}
	return len(l.mu.open)
}
