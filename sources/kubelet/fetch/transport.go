package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// ErrProtocol is wrapped by the error for an answer that is not HTTP/1.
var ErrProtocol = errors.New("the server does not speak HTTP/1.1")

// Transport is an http.RoundTripper. Its methods may be called by several goroutines at
// once. Concurrent requests to one server use one connection each; one of them is kept.
type Transport struct {
	tls            *tls.Config
	maxIdle        int // 0: no limit
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
	idleTimeout    time.Duration // how long a connection may be idle before it is closed
	maxHeaderBytes int64         // of the head of an answer

	requests sync.Pool // of *bytes.Buffer: requests as they are sent
	buffers  sync.Pool // of *answerBuffer
	mu       struct {
		sync.Mutex
		idle       map[server]*conn
		closeCount int       // calls of CloseIdleConnections
		sweptAt    time.Time // when removeExpired last looked
	}
}

// server is the other end of a connection.
type server struct {
	scheme, host string // host is "host:port"
}

// serverOf returns the server a URL names.
func serverOf(u *url.URL) (server, error) {
	if u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return server{}, fmt.Errorf("%q names no server: write http://HOST:PORT or https://HOST:PORT", u.Redacted())
	}
	host := u.Host
	if u.Port() == "" { // package net resolves names of services as ports
		host = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	return server{u.Scheme, host}, nil
}

// New returns a Transport. It opens no connection. If config has no ServerName, connections of
// https use the host of the URL. Sessions are never resumed and connections never renegotiated.
//
// maxIdle bounds the idle connections; 0 means no limit. Beyond it a connection is closed when its
// answer has ended, and the older idle ones stay: servers are asked in turn, so closing the one
// that is idle the longest would close exactly the one that is needed next.
func New(config *tls.Config, maxIdle int) *Transport {
	config = config.Clone()
	config.SessionTicketsDisabled, config.Renegotiation = true, tls.RenegotiateNever
	t := &Transport{
		tls: config, maxIdle: maxIdle, dial: (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
		idleTimeout: 3 * time.Minute, maxHeaderBytes: 64 << 10,
	}
	t.mu.idle = map[server]*conn{}
	t.requests.New = func() any { return new(bytes.Buffer) }
	t.buffers.New = func() any { return newAnswerBuffer() }
	return t
}

// RoundTrip sends a GET or HEAD request without a body and returns its answer. Close the
// body of the answer: if it was read to its end, the next request uses the same connection.
//
// The request's context bounds everything, reading the body included. If a kept connection
// ends before the first byte of an answer, the request is sent a second time on a new one.
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
		// The server has closed the connection while it was idle.
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

// putBuffer keeps a buffer for another answer.
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

// removeExpired removes and returns the connections that were idle for longer than
// idleTimeout. It looks once in an idleTimeout, so that no timer is needed. t.mu is held.
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

// CloseIdleConnections closes the idle connections now, and the others when their answer
// has been read.
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

// isTimeout reports whether err is that of a deadline.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// contextError returns the error of the context if the context has ended, else err.
func contextError(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if isTimeout(err) {
		return context.DeadlineExceeded // the timer of the connection fired just before that of the context
	}
	return err
}
