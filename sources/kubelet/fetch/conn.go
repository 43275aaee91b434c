package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"
)

// conn is a connection to a server. At most one request is on it.
type conn struct {
	net.Conn
	wait   *readiness // nil if the connection tells none
	in     incoming   // of TLS
	to     server
	peer   string    // what Peer says
	used   time.Time // when its last answer ended
	closed int       // Transport.mu.closed when it was made
	giveUp func()    // hangUp, bound once
}

// dial connects to a server, and lends the connection what is in s.
func (t *Transport) dial(ctx context.Context, to server, s *scratch) (*conn, error) {
	t.mu.Lock()
	c := &conn{to: to, closed: t.mu.closed}
	t.mu.Unlock()
	c.giveUp = c.hangUp
	var err error
	if c.Conn, err = t.opts.Dial(ctx, "tcp", to.host); err != nil {
		return nil, err
	}
	c.wait = readinessOf(c.Conn)
	if to.scheme == "http" {
		return c, nil
	}
	if err := c.secure(ctx, t.opts.TLS, s); err != nil {
		c.Conn.Close()
		return nil, err
	}
	return c, nil
}

// secure speaks TLS on the connection from here on.
func (c *conn) secure(ctx context.Context, config *tls.Config, s *scratch) error {
	own := config
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(c.to.host)
		if err != nil {
			return fmt.Errorf("name the server: %w", err)
		}
		own = config.Clone()
		own.ServerName = host
	}
	secured := tls.Client(c.Conn, own)
	c.in = incomingOf(secured)
	c.in.lend(s)
	if err := secured.HandshakeContext(ctx); err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
			return http.ErrSchemeMismatch
		}
		return err
	}
	if shown := secured.ConnectionState().PeerCertificates; len(shown) > 0 {
		c.peer = shown[0].Subject.CommonName
	}
	forget(secured, config)
	c.Conn = secured
	return nil
}

// longAgo makes whoever waits on a connection give up.
var longAgo = time.Unix(1, 0)

func (c *conn) hangUp() {
	_ = c.SetDeadline(longAgo) // it fails on a closed one only, which waits for nothing
}

// afterFunc is context.AfterFunc. A context that has the method is asked directly, which
// spares the contexts in between.
func afterFunc(ctx context.Context, do func()) (stop func() bool) {
	if own, ok := ctx.(interface {
		AfterFunc(func()) func() bool
	}); ok {
		return own.AfterFunc(do)
	}
	return context.AfterFunc(ctx, do)
}

// ask sends a request on a connection and returns the answer. s is what the connection was
// lent; nil if that has yet to be done. On an error the connection is closed, and heard says
// whether anything of an answer came.
func (t *Transport) ask(c *conn, req *http.Request, out []byte, s *scratch) (resp *http.Response, heard bool, err error) {
	ctx := req.Context()
	// The connection has no deadline of its own: ctx has one, and tells when it has come.
	stop := afterFunc(ctx, c.giveUp)
	_, err = c.Write(out)
	if err == nil && s == nil {
		c.await()
	}
	if s == nil {
		s = t.scratch.Get().(*scratch)
		c.in.lend(s)
	}
	s.in = source{conn: c.Conn}
	s.br.Reset(&s.in)
	if err == nil {
		resp, err = s.head(req, t.opts.MaxHeaderBytes)
	}
	if err != nil {
		heard = s.in.heard
		stop()
		c.Close()
		t.putBack(s)
		return nil, heard, because(ctx, err)
	}
	resp.Body = &body{
		from: resp.Body, ended: resp.Body == http.NoBody, last: resp.Close || req.Close,
		ctx: ctx, stop: stop, t: t, c: c, s: s,
	}
	return resp, true, nil
}

// maxInformational bounds the answers that only announce another.
const maxInformational = 5

// head reads the head of the answer to a request.
func (s *scratch) head(req *http.Request, limit int64) (*http.Response, error) {
	for range maxInformational {
		s.in.left = limit
		resp, err := http.ReadResponse(s.br, req)
		switch {
		case err != nil && s.in.err == io.EOF && !s.in.heard:
			return nil, fmt.Errorf("the server closed the connection without an answer: %w", io.EOF)
		case err != nil && s.in.err != nil: // there was no more to read
			return nil, s.in.err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
		case resp.ProtoMajor != 1:
			return nil, fmt.Errorf("%w: it answers in %s", ErrProtocol, resp.Proto)
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, fmt.Errorf("%w: it changes to another protocol, which nobody asked for", ErrProtocol)
		case resp.StatusCode/100 != 1:
			s.in.left = math.MaxInt64
			return resp, nil
		}
	}
	return nil, fmt.Errorf("%w: more than %d announcements, and no answer", ErrProtocol, maxInformational)
}

// source reads a connection up to a limit.
type source struct {
	conn  net.Conn
	left  int64 // how much may yet be read
	heard bool  // something was read
	err   error // what reading ended with
}

// Read reads from the connection.
func (s *source) Read(p []byte) (int, error) {
	if s.left <= 0 {
		s.err = fmt.Errorf("%w: the head of its answer has no end", ErrProtocol)
		return 0, s.err
	}
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.conn.Read(p)
	s.left -= int64(n)
	s.heard = s.heard || n > 0
	s.err = err
	return n, err
}

// body is the body of an answer. It holds the connection and the scratch until it
// is closed.
type body struct {
	from  io.ReadCloser
	ended bool // it was read to its end
	last  bool // the connection ends with it
	ctx   context.Context
	stop  func() bool // releases ctx
	t     *Transport
	c     *conn
	s     *scratch // nil once it is closed
}

// Peer returns whom the certificate names that the server of an answer has shown: its
// subject's common name. It is empty over http, and if resp's body is not the one that came
// from a Transport.
func Peer(resp *http.Response) string {
	if b, ok := resp.Body.(*body); ok {
		return b.c.peer
	}
	return ""
}

// Read reads the body, or gives the context's error if that has ended it.
func (b *body) Read(p []byte) (int, error) {
	if b.s == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.from.Read(p)
	if err == io.EOF {
		b.ended = true
		return n, err
	}
	if err != nil {
		err = because(b.ctx, err)
	}
	return n, err
}

// Close ends the request. The connection is kept if nothing more can come on it.
func (b *body) Close() error {
	s := b.s
	if s == nil {
		return nil
	}
	b.s = nil
	// What is left over is an answer that nobody asked for, or the word that the
	// server ends the connection.
	over := s.br.Buffered() == 0 && b.c.in.empty()
	if over {
		b.c.in.takeBack(s)
	}
	b.t.putBack(s)
	if !b.stop() || !b.ended || b.last || !over {
		return b.c.Close()
	}
	b.t.keep(b.c)
	return nil
}
