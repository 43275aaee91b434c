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
	readable       *readableWaiter  // nil if the connection is not one of the operating system
	tlsBuffer      tlsmemory.Buffer // zero without TLS
	server         server
	peerCommonName string
	lastUsed       time.Time // when its last answer ended
	closeCount     int       // Transport.mu.closeCount when the connection was made
}

// answerBuffer is the memory that reading one answer needs. Connections have no buffers of their
// own. A request takes an answerBuffer when the answer begins to arrive, so of many servers that are asked at
// the same time, the few whose answers are being read share buffers that are warm in the processor's caches.
type answerBuffer struct {
	records []byte // for conn.tlsBuffer; nil while it is lent
	source  limitedSource
	reader  *bufio.Reader // reads source
}

// recordsSize holds the answer of a usual node, so that one read of the socket takes it all.
const recordsSize = 64 << 10

func newAnswerBuffer() *answerBuffer {
	s := new(answerBuffer)
	s.reader = bufio.NewReader(&s.source)
	return s
}

// giveMemoryTo lends the memory for TLS records to c, if c takes it. Close of the answer takes it back.
// A connection that ends before keeps it.
func (s *answerBuffer) giveMemoryTo(c *conn) {
	if !c.tlsBuffer.CanGiveMemory() {
		return
	}
	if s.records == nil {
		s.records = make([]byte, 0, recordsSize)
	}
	c.tlsBuffer.GiveMemory(s.records)
	s.records = nil
}

// connect connects to a server. For https the connection reads into the memory of s.
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
	if err := c.startTLS(ctx, t.tls, s); err != nil {
		c.Conn.Close()
		return nil, err
	}
	return c, nil
}

// startTLS performs the TLS handshake.
func (c *conn) startTLS(ctx context.Context, shared *tls.Config, s *answerBuffer) error {
	own := shared
	if shared.ServerName == "" {
		host, _, err := net.SplitHostPort(c.server.host)
		if err != nil {
			return fmt.Errorf("find the name of the server: %w", err)
		}
		own = shared.Clone()
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
	tlsmemory.FreeHandshake(secured, shared)
	c.Conn = secured
	return nil
}

// longAgo is a deadline that makes every waiting call on a connection fail at once.
var longAgo = time.Unix(1, 0)

func (c *conn) expireDeadline() {
	_ = c.SetDeadline(longAgo) // fails only on a closed connection, on which no call waits
}

// exchange sends a request on a connection and returns the answer. s is the buffer that the new
// connection already reads into; nil for a kept connection, which gets one when the answer arrives. On an error the
// connection is closed, and gotBytes says whether any byte of an answer arrived.
func (t *Transport) exchange(c *conn, req *http.Request, out []byte, s *answerBuffer) (resp *http.Response, gotBytes bool, err error) {
	ctx := req.Context()
	// The connection has no deadline of its own: the end of ctx aborts it.
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

// maxInformational bounds the answers of status 1xx that may come before the answer.
const maxInformational = 5

// readHead reads the head of the answer to a request.
func (s *answerBuffer) readHead(req *http.Request, limit int64) (*http.Response, error) {
	for range maxInformational {
		s.source.left = limit
		resp, err := http.ReadResponse(s.reader, req)
		switch {
		case err != nil && errors.Is(s.source.err, io.EOF) && !s.source.gotBytes:
			return nil, fmt.Errorf("the server closed the connection without an answer: %w", io.EOF)
		case err != nil && s.source.err != nil: // reading failed, not parsing
			return nil, s.source.err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
		case resp.ProtoMajor != 1:
			return nil, fmt.Errorf("%w: it answers in %s", ErrProtocol, resp.Proto)
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, fmt.Errorf("%w: it switches to another protocol, which was not requested", ErrProtocol)
		case resp.StatusCode/100 != 1:
			s.source.left = math.MaxInt64
			return resp, nil
		}
	}
	return nil, fmt.Errorf("%w: more than %d informational answers, and no final one", ErrProtocol, maxInformational)
}

// limitedSource reads a connection up to a limit.
type limitedSource struct {
	conn     net.Conn
	left     int64 // how many bytes may still be read
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
	closes    bool // the connection ends with this answer
	ctx       context.Context
	stop      func() bool // stops waiting for the end of ctx
	transport *Transport
	conn      *conn
	buffer    *answerBuffer // nil after Close
}

// PeerCommonName returns the common name in the certificate of the server that sent resp. It is empty
// for http, and if resp.Body is not the one that a Transport returned.
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

// Close ends the request. The connection is kept if the answer was read to its end and nothing follows it.
func (b *body) Close() error {
	s, c := b.buffer, b.conn
	if s == nil {
		return nil
	}
	b.buffer = nil
	// Unread bytes are an answer to no request, or the server's notice that it closes the connection.
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

// readableWaiter waits until a connection has something to read, without a buffer to read it into.
type readableWaiter struct {
	raw    syscall.RawConn
	check  func(fd uintptr) bool // isReadableOrAgain, bound once
	called bool
}

// newReadableWaiter returns the readableWaiter of c; nil if c is not a connection of the operating system.
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

// wait returns when the connection has something to read, its deadline has passed or it has ended. The
// next read returns the error, if there is one. A nil readableWaiter does not wait.
func (w *readableWaiter) wait() {
	if w != nil {
		w.called = false
		_ = w.raw.Read(w.check)
	}
}

// isReadableOrAgain reports whether there is something to read. The runtime calls it once, and again when
// the poller says that the connection has become readable.
func (w *readableWaiter) isReadableOrAgain(fd uintptr) bool {
	if w.called {
		return true
	}
	w.called = true
	return isReadable(fd)
}
