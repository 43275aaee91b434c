package fetch

import (
	"bufio"
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

// Options say how servers are reached. The zero Options suits servers whose
// certificates lead to the system's authorities.
type Options struct {
	// TLS configures connections of https. Its ServerName is the host asked,
	// unless it is set; sessions are not resumed, nor connections negotiated anew,
	// whatever it says. Default nil: the zero tls.Config.
	TLS *tls.Config
	// Dial connects. Default: a net.Dialer with TCP keep-alive.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// IdleTimeout is how long a connection may lie unused before it is closed
	// instead of being used again. Default DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxIdle is how many connections may lie unused; one more is closed when its
	// answer has ended. Those that lie there stay: servers that are asked in turn
	// come back to the one unused the longest first, so to close that one would
	// leave none of them a connection. Default 0: no limit.
	MaxIdle int
	// MaxHeaderBytes bounds the head of an answer. Default
	// DefaultMaxHeaderBytes.
	MaxHeaderBytes int64
}

// The defaults.
const (
	DefaultIdleTimeout    = 3 * time.Minute
	DefaultMaxHeaderBytes = 64 << 10
)

// keepAlive is the time between probes of connections that nobody uses.
const keepAlive = 30 * time.Second

// ErrProtocol is wrapped by the error for an answer that is no HTTP/1.
var ErrProtocol = errors.New("the server does not speak HTTP/1.1")

// Transport is an http.RoundTripper. Its methods may be called by several
// goroutines at once; requests to one server that overlap have connections of
// their own, of which one is kept.
type Transport struct {
	opts     Options
	requests sync.Pool // of *[]byte: requests as they are sent
	scratch  sync.Pool // of *scratch
	mu       struct {
		sync.Mutex
		idle   map[server]*conn
		closed int       // how often all connections were told to close
		swept  time.Time // when idle was last searched for what is too old
	}
}

// server is where connections lead to.
type server struct {
	scheme, host string // host is "host:port"
}

// serverOf returns the server a URL names.
func serverOf(u *url.URL) (server, error) {
	if u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return server{}, fmt.Errorf("no server to ask in %q: write http://HOST:PORT or https://HOST:PORT", u.Redacted())
	}
	host := u.Host
	if u.Port() == "" { // net takes the names of services for ports
		host = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	return server{u.Scheme, host}, nil
}

// New returns a Transport. It connects to nobody.
func New(opts Options) *Transport {
	if opts.TLS == nil {
		opts.TLS = new(tls.Config)
	}
	opts.TLS = opts.TLS.Clone()
	opts.TLS.SessionTicketsDisabled, opts.TLS.Renegotiation = true, tls.RenegotiateNever
	if opts.Dial == nil {
		opts.Dial = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	}
	if opts.IdleTimeout == 0 {
		opts.IdleTimeout = DefaultIdleTimeout
	}
	if opts.MaxHeaderBytes == 0 {
		opts.MaxHeaderBytes = DefaultMaxHeaderBytes
	}
	t := &Transport{opts: opts}
	t.mu.idle = map[server]*conn{}
	t.requests.New = func() any { return new([]byte) }
	t.scratch.New = func() any { return newScratch() }
	return t
}

// RoundTrip sends a request and returns its answer, whose body must be closed. A
// body that was read to its end leaves the connection to the next request.
//
// The request's context bounds all of it, the answer's body included. A request is
// sent a second time, on a fresh connection, if a kept one turns out to have ended
// without a byte of an answer: ask only for what may be done twice.
//
// Errors wrap the context's, those of net, crypto/tls and crypto/x509, or
// ErrProtocol.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	out := t.requests.Get().(*[]byte)
	defer t.requests.Put(out)
	var err error
	if *out, err = appendRequest((*out)[:0], req); err != nil {
		return nil, err
	}
	to, err := serverOf(req.URL)
	if err != nil {
		return nil, err
	}
	if c := t.take(to); c != nil {
		resp, heard, err := t.ask(c, req, *out, nil)
		if err == nil || heard || isTimeout(err) || req.Context().Err() != nil {
			return resp, err
		}
		// The server has closed it while it lay idle.
	}
	s := t.scratch.Get().(*scratch)
	c, err := t.dial(req.Context(), to, s)
	if err != nil {
		t.putBack(s)
		return nil, because(req.Context(), err)
	}
	resp, _, err := t.ask(c, req, *out, s)
	return resp, err
}

// putBack keeps a scratch for another answer.
func (t *Transport) putBack(s *scratch) {
	s.in = source{}
	t.scratch.Put(s)
}

// take returns the connection kept to a server, or nil if there is none.
func (t *Transport) take(to server) *conn {
	t.mu.Lock()
	c := t.mu.idle[to]
	delete(t.mu.idle, to)
	t.mu.Unlock()
	if c != nil && time.Since(c.used) > t.opts.IdleTimeout {
		c.Close()
		return nil
	}
	return c
}

// keep keeps a connection for the next request.
func (t *Transport) keep(c *conn) {
	c.used = time.Now()
	t.mu.Lock()
	old := t.sweep(c.used)
	room := t.opts.MaxIdle == 0 || len(t.mu.idle) < t.opts.MaxIdle
	if room && t.mu.idle[c.to] == nil && c.closed == t.mu.closed {
		t.mu.idle[c.to] = c
	} else {
		old = append(old, c)
	}
	t.mu.Unlock()
	closeAll(old)
}

// sweep takes out the connections that nobody has used for too long, as where a
// server is asked no more. It looks once in an IdleTimeout: nobody waits on a
// timer for it.
func (t *Transport) sweep(now time.Time) (old []*conn) {
	if now.Sub(t.mu.swept) < t.opts.IdleTimeout {
		return nil
	}
	t.mu.swept = now
	for to, c := range t.mu.idle {
		if now.Sub(c.used) > t.opts.IdleTimeout {
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
		return // nobody was ever asked there
	}
	if c := t.take(to); c != nil {
		c.Close()
	}
}

// CloseIdleConnections closes the connections that are not in use. Those in use
// are closed when their answer has been read.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	all := make([]*conn, 0, len(t.mu.idle))
	for _, c := range t.mu.idle {
		all = append(all, c)
	}
	clear(t.mu.idle)
	t.mu.closed++
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

// because returns the context's error in place of what it made a connection say.
func because(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if isTimeout(err) {
		return context.DeadlineExceeded // the connection's clock was a little ahead of the context's
	}
	return err
}

// scratch is what an answer needs from its first byte to its end. Connections have no
// buffers of their own, and those that wait for an answer have none either: of servers that
// are asked together, the few whose answers are read at one moment go round in the same,
// which are warm in the processor's caches.
type scratch struct {
	records []byte        // for incoming; nil while it is lent
	in      source        // what the answer is read from: a conn
	br      *bufio.Reader // reads in
}

// recordsSize holds what a usual node answers, so that it is read at once.
const recordsSize = 64 << 10

func newScratch() *scratch {
	s := new(scratch)
	s.br = bufio.NewReader(&s.in)
	return s
}
