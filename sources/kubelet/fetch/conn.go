package fetch

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/weir-metrics/weir/sources/kubelet/fetch/tlsmemory"
)

// conn is a connection to a server. It carries at most one request at a time.
type conn struct {
	net.Conn
	readable       *readableWaiter  // nil if the connection has no file descriptor
	tlsBuffer      tlsmemory.Buffer // zero without TLS
	server         server
	peerCommonName string
	lastUsed       time.Time // the end of its last answer
	closeCount     int       // Transport.mu.closeCount when the connection was opened
}

// answerBuffer is the memory that is needed to read one answer. Connections have no buffers of
// their own: a request takes an answerBuffer when its answer begins to arrive. If many servers are
// asked at the same time, only the few answers that are being read need buffers, and those buffers
// stay in the processor's caches.
type answerBuffer struct {
	records []byte // for conn.tlsBuffer; nil while it is lent
	source  limitedSource
	reader  *bufio.Reader // reads source
}

// recordsSize is enough for the answer of a usual node, so that one read of the socket gets all of
// it.
const recordsSize = 64 << 10

func newAnswerBuffer() *answerBuffer {
	s := new(answerBuffer)
	s.reader = bufio.NewReader(&s.source)
	return s
}

// giveMemoryTo lends the memory for TLS records to c, if c accepts it. Close of the answer takes it
// back. A connection that ends before that keeps the memory.
func (b *answerBuffer) giveMemoryTo(c *conn) {
	if !c.tlsBuffer.CanGiveMemory() {
		return
	}
	if b.records == nil {
		b.records = make([]byte, 0, recordsSize)
	}
	c.tlsBuffer.GiveMemory(b.records)
	b.records = nil
}

// connect connects to a server. With https the connection reads into the memory of s.
func (t *Transport) connect(ctx context.Context, to server, s *answerBuffer) (*conn, error) {
	t.mu.Lock()
	c := &conn{server: to, closeCount: t.mu.closeCount}
	t.mu.Unlock()
	var err error
	if c.Conn, err = t.dial(ctx, "tcp", to.host); err != nil {
		return nil, err
	}
	c.readable = newReadableWaiter(c.Conn)
	if to.scheme == "http" {
		return c, nil
	}
	if err := c.startTLS(ctx, t, s); err != nil {
		c.Conn.Close()
		return nil, err
	}
	return c, nil
}

// startTLS does the TLS handshake.
func (c *conn) startTLS(ctx context.Context, t *Transport, s *answerBuffer) error {
	own := t.tls.Clone()
	if t.RootCAs != nil {
		own.RootCAs = t.RootCAs()
	}
	if own.ServerName == "" {
		host, _, err := net.SplitHostPort(c.server.host)
		if err != nil {
			return fmt.Errorf("find the name of the server: %w", err)
		}
		own.ServerName = host
	}
	secured := tls.Client(c.Conn, own)
	c.tlsBuffer = tlsmemory.BufferOf(secured)
	s.giveMemoryTo(c)
	if err := secured.HandshakeContext(ctx); err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
			return http.ErrSchemeMismatch
		}
		return err
	}
	if certificates := secured.ConnectionState().PeerCertificates; len(certificates) > 0 {
		c.peerCommonName = certificates[0].Subject.CommonName
	}
	tlsmemory.FreeHandshake(secured, t.tls)
	c.Conn = secured
	return nil
}

// longAgo is a deadline that makes every blocked call on a connection fail at once.
var longAgo = time.Unix(1, 0)

func (c *conn) expireDeadline() {
	_ = c.SetDeadline(longAgo) // it fails only on a closed connection, where no call is blocked
}

// exchange sends a request on a connection and returns the answer. s is the buffer that a new
// connection already reads into. It is nil for a kept connection, which gets a buffer when the
// answer arrives. On an error the connection is closed, and gotBytes reports whether any byte of an
// answer arrived.
func (t *Transport) exchange(c *conn, req *http.Request, out []byte, s *answerBuffer) (resp *http.Response, gotBytes bool, err error) {
	ctx := req.Context()
	// The connection has no deadline of its own; the end of ctx aborts the request.
	stop := context.AfterFunc(ctx, c.expireDeadline)
	_, err = c.Write(out)
	if err == nil && s == nil {
		c.readable.wait()
	}
	if s == nil {
		s = t.buffers.Get().(*answerBuffer)
		s.giveMemoryTo(c)
	}
	s.source = limitedSource{conn: c.Conn}
	s.reader.Reset(&s.source)
	if err == nil {
		resp, err = s.readHead(req, t.maxHeaderBytes)
	}
	if err != nil {
		gotBytes = s.source.gotBytes
		stop()
		c.Close()
		t.putBuffer(s)
		return nil, gotBytes, contextError(ctx, err)
	}
	resp.Body = &body{
		content: resp.Body, atEnd: resp.Body == http.NoBody, closes: resp.Close || req.Close,
		ctx: ctx, stop: stop, transport: t, conn: c, buffer: s,
	}
	return resp, true, nil
}

// maxInformational bounds the number of 1xx answers before the final answer.
const maxInformational = 5

// readHead reads the status line and the header of the answer to a request.
func (b *answerBuffer) readHead(req *http.Request, limit int64) (*http.Response, error) {
	for range maxInformational {
		b.source.left = limit
		resp, err := http.ReadResponse(b.reader, req)
		switch {
		case err != nil && errors.Is(b.source.err, io.EOF) && !b.source.gotBytes:
			return nil, fmt.Errorf("the server closed the connection without an answer: %w", io.EOF)
		case err != nil && b.source.err != nil: // the read failed, not the parser
			return nil, b.source.err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
		case resp.ProtoMajor != 1:
			return nil, fmt.Errorf("%w: it answers in %s", ErrProtocol, resp.Proto)
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, fmt.Errorf("%w: it switches to another protocol, which was not requested", ErrProtocol)
		case resp.StatusCode/100 != 1:
			b.source.left = math.MaxInt64
			return resp, nil
		}
	}
	return nil, fmt.Errorf("%w: more than %d informational answers, and no final one", ErrProtocol, maxInformational)
}

// limitedSource reads from a connection up to a limit.
type limitedSource struct {
	conn     net.Conn
	left     int64 // bytes that may still be read
	gotBytes bool
	err      error // the error of the last read
}

// Read reads from the connection.
func (s *limitedSource) Read(p []byte) (int, error) {
	if s.left <= 0 {
		s.err = fmt.Errorf("%w: the head of its answer is too long", ErrProtocol)
		return 0, s.err
	}
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.conn.Read(p)
	s.left -= int64(n)
	s.gotBytes = s.gotBytes || n > 0
	s.err = err
	return n, err
}

// body is the body of an answer. It owns the connection and the buffer until Close.
type body struct {
	content   io.ReadCloser
	atEnd     bool // content was read to its end
	closes    bool // the server closes the connection after this answer
	ctx       context.Context
	stop      func() bool // stops waiting for the end of ctx
	transport *Transport
	conn      *conn
	buffer    *answerBuffer // nil after Close
}

// PeerCommonName returns the common name in the certificate of the server that sent resp. It is
// empty for http, and if resp.Body is not one that a Transport returned.
func PeerCommonName(resp *http.Response) string {
	if b, ok := resp.Body.(*body); ok {
		return b.conn.peerCommonName
	}
	return ""
}

// Read reads the body. If the context has ended, it returns the context's error.
func (b *body) Read(p []byte) (int, error) {
	if b.buffer == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.content.Read(p)
	if errors.Is(err, io.EOF) {
		b.atEnd = true
		return n, err
	}
	if err != nil {
		err = contextError(b.ctx, err)
	}
	return n, err
}

// Close ends the request. The connection is kept if the answer was read to its end and no more
// bytes arrived.
func (b *body) Close() error {
	s, c := b.buffer, b.conn
	if s == nil {
		return nil
	}
	b.buffer = nil
	// Unread bytes are an answer without a request, or the server's notice that it closes the
	// connection.
	empty := s.reader.Buffered() == 0 && c.tlsBuffer.IsEmpty()
	if empty {
		if memory := c.tlsBuffer.TakeBack(); memory != nil {
			s.records = memory
		}
	}
	b.transport.putBuffer(s)
	if !b.stop() || !b.atEnd || b.closes || !empty {
		return c.Close()
	}
	b.transport.putIdle(c)
	return nil
}

// readableWaiter waits until a connection has something to read. It needs no buffer.
type readableWaiter struct {
	raw    syscall.RawConn
	check  func(fd uintptr) bool // isReadableOrAgain, bound once
	called bool
}

// newReadableWaiter returns the readableWaiter of c, or nil if c has no file descriptor.
func newReadableWaiter(c net.Conn) *readableWaiter {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	w := &readableWaiter{raw: raw}
	w.check = w.isReadableOrAgain
	return w
}

// wait returns when the connection has something to read, has passed its deadline or has ended. If
// there is an error, the next read returns it. A nil readableWaiter does not wait.
func (w *readableWaiter) wait() {
	if w != nil {
		w.called = false
		_ = w.raw.Read(w.check)
	}
}

// isReadableOrAgain reports whether there is something to read. The runtime calls it once at first,
// and a second time when the poller reports that the connection is readable.
func (w *readableWaiter) isReadableOrAgain(fd uintptr) bool {
	if w.called {
		return true
	}
	w.called = true
	return isReadable(fd)
}
