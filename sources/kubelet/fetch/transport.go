package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
)

// ErrProtocol is the error of an answer that is not HTTP/1. The errors of RoundTrip wrap it.
var ErrProtocol = errors.New("the server does not use HTTP/1.1")

// Transport is an http.RoundTripper. Its methods may be called by several goroutines at
// once. Concurrent requests to one server use one connection each; one of them is kept.
type Transport struct {
	// RootCAs, if not nil, returns the certificates that verify the server of a new connection, in
	// place of those of the configuration. It must be set before the first request.
	RootCAs func() *x509.CertPool

	tls            *tls.Config
	maxIdle        int // 0 means no limit
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
	idleTimeout    time.Duration // how long a connection may be idle before it is closed
	maxHeaderBytes int64         // the limit on the header of an answer

	requests sync.Pool // *bytes.Buffer with a request to send
	buffers  sync.Pool // *answerBuffer
	mu       struct {
		sync.Mutex
		idle       map[server]*conn
		closeCount int       // number of calls of CloseIdleConnections
		sweptAt    time.Time // the last time that removeExpired searched
	}
}

// server identifies the server of a connection.
type server struct {
	scheme, host string // host is "host:port"
}

// serverOf returns the server that a URL names.
func serverOf(u *url.URL) (server, error) {
	if u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return server{}, fmt.Errorf("%q names no server: write http://HOST:PORT or https://HOST:PORT", humanize.URL(u.String()))
	}
	host := u.Host
	if u.Port() == "" { // package net also accepts a service name as port
		host = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	return server{u.Scheme, host}, nil
}

// dialTimeout is how long a connection may take. So a node that does not answer at all, not even by its
// kernel, is found early.
const dialTimeout = 2 * time.Second

// New returns a Transport. It opens no connection. If config has no ServerName, https connections
// use the host of the URL. Sessions are never resumed and connections are never renegotiated.
//
// maxIdle bounds the number of idle connections; 0 means no limit. If the limit is reached, a
// connection is closed after its answer, and the older idle ones stay. Servers are asked in turn,
// so the connection that has been idle the longest is the one that is needed next.
func New(config *tls.Config, maxIdle int) *Transport {
	config = config.Clone()
	config.SessionTicketsDisabled, config.Renegotiation = true, tls.RenegotiateNever
	t := &Transport{
		tls: config, maxIdle: maxIdle, dial: (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		idleTimeout: 3 * time.Minute, maxHeaderBytes: 64 << 10,
	}
	t.mu.idle = map[server]*conn{}
	t.requests.New = func() any { return new(bytes.Buffer) }
	t.buffers.New = func() any { return newAnswerBuffer() }
	return t
}

// RoundTrip sends a GET or HEAD request without a body and returns its answer. The caller must
// close the body of the answer. If the body was read to its end, the next request uses the same
// connection.
//
// The request's context limits everything, including the read of the body. If a kept connection
// ends before the first byte of an answer, the request is sent again on a new one.
//
// Errors wrap those of the context, net, crypto/tls and crypto/x509, or ErrProtocol.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	out := t.requests.Get().(*bytes.Buffer)
	defer t.requests.Put(out)
	out.Reset()
	if err := writeRequest(out, req); err != nil {
		return nil, err
	}
	to, err := serverOf(req.URL)
	if err != nil {
		return nil, err
	}
	if c := t.takeIdle(to); c != nil {
		resp, gotBytes, err := t.exchange(c, req, out.Bytes(), nil)
		if err == nil || gotBytes || isTimeout(err) || req.Context().Err() != nil {
			return resp, err
		}
		// The server closed the connection while it was idle.
	}
	s := t.buffers.Get().(*answerBuffer)
	c, err := t.connect(req.Context(), to, s)
	if err != nil {
		t.putBuffer(s)
		return nil, contextError(req.Context(), err)
	}
	resp, _, err := t.exchange(c, req, out.Bytes(), s)
	return resp, err
}

func (t *Transport) putBuffer(s *answerBuffer) {
	s.source = limitedSource{}
	t.buffers.Put(s)
}

// takeIdle returns the idle connection to a server, or nil if there is none.
func (t *Transport) takeIdle(to server) *conn {
	t.mu.Lock()
	c := t.mu.idle[to]
	delete(t.mu.idle, to)
	t.mu.Unlock()
	if c != nil && time.Since(c.lastUsed) > t.idleTimeout {
		c.Close()
		return nil
	}
	return c
}

// putIdle keeps a connection for the next request.
func (t *Transport) putIdle(c *conn) {
	c.lastUsed = time.Now()
	t.mu.Lock()
	old := t.removeExpired(c.lastUsed)
	hasSpace := t.maxIdle == 0 || len(t.mu.idle) < t.maxIdle
	if hasSpace && t.mu.idle[c.server] == nil && c.closeCount == t.mu.closeCount {
		t.mu.idle[c.server] = c
	} else {
		old = append(old, c)
	}
	t.mu.Unlock()
	closeAll(old)
}

// removeExpired removes and returns the connections that have been idle for longer than
// idleTimeout. It searches once in each idleTimeout, so no timer is needed. The caller has locked
// t.mu.
func (t *Transport) removeExpired(now time.Time) (old []*conn) {
	if now.Sub(t.mu.sweptAt) < t.idleTimeout {
		return nil
	}
	t.mu.sweptAt = now
	for to, c := range t.mu.idle {
		if now.Sub(c.lastUsed) > t.idleTimeout {
			delete(t.mu.idle, to)
			old = append(old, c)
		}
	}
	return old
}

// Forget closes the idle connection to the server that a URL names.
func (t *Transport) Forget(u *url.URL) {
	to, err := serverOf(u)
	if err != nil {
		return // no connection can exist
	}
	if c := t.takeIdle(to); c != nil {
		c.Close()
	}
}

// CloseIdleConnections closes the idle connections now, and the others after their answers have
// been read.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	all := make([]*conn, 0, len(t.mu.idle))
	for _, c := range t.mu.idle {
		all = append(all, c)
	}
	clear(t.mu.idle)
	t.mu.closeCount++
	t.mu.Unlock()
	closeAll(all)
}

func closeAll(conns []*conn) {
	for _, c := range conns {
		c.Close()
	}
}

// isTimeout reports whether err is the error of a deadline.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// contextError returns the context's error if the context has ended, else err.
func contextError(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if isTimeout(err) {
		return context.DeadlineExceeded // the timer of the connection fired just before that of the context
	}
	return err
}
