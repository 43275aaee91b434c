package fetch

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const hello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

// Options has the fields of a Transport that a test changes. Zero fields keep what New sets.
type Options struct {
	TLS            *tls.Config
	MaxIdle        int
	Dial           func(ctx context.Context, network, address string) (net.Conn, error)
	IdleTimeout    time.Duration
	MaxHeaderBytes int64
}

func newTransport(t testing.TB, o Options) *Transport {
	t.Helper()
	if o.TLS == nil {
		o.TLS = new(tls.Config)
	}
	tr := New(o.TLS, o.MaxIdle)
	if o.Dial != nil {
		tr.dial = o.Dial
	}
	tr.idleTimeout, tr.maxHeaderBytes = cmp.Or(o.IdleTimeout, tr.idleTimeout), cmp.Or(o.MaxHeaderBytes, tr.maxHeaderBytes)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// wantHello fails the test unless the answer to a request is hello.
func wantHello(t *testing.T, tr *Transport, url string) {
	t.Helper()
	if got, err := get(t.Context(), tr, url); err != nil || got.Body != "hello" {
		t.Errorf("got %q and error %v, want hello", got.Body, err)
	}
}

func TestConnections(t *testing.T) {
	f := func(says string, want int, do func(tr *Transport, url string), connections ...[]string) {
		t.Helper()
		s := newScript(t, connections...)
		tr := newTransport(t, Options{})
		do(tr, s.url())
		if got := len(s.made); got != want {
			t.Errorf("%s: got %d connections, want %d", says, got, want)
		}
	}
	thrice := func(tr *Transport, url string) {
		for range 3 {
			wantHello(t, tr, url)
		}
	}
	closing := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
	f("a connection is kept", 1, thrice, []string{hello, chunked, hello})
	f("the server says that it closes", 2, thrice, []string{closing}, []string{hello, hello})
	f("the server closes unsaid", 2, thrice, []string{hello}, []string{hello, hello})
	f("the body ends with the connection", 2, thrice, []string{"HTTP/1.1 200 OK\r\n\r\nhello"}, []string{hello, hello})
	f("HTTP/1.0", 2, thrice, []string{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"}, []string{hello, hello})
	f("more than was asked for", 2, thrice, []string{hello + hello}, []string{hello, hello})
	f("announcements", 1, thrice, []string{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + hello, "HTTP/1.1 100 Continue\r\n\r\n" + hello, hello})
	f("forgotten", 2, func(tr *Transport, url string) {
		wantHello(t, tr, url)
		req := httptest.NewRequest(http.MethodGet, url, nil)
		tr.Forget(req.URL)
		wantHello(t, tr, url)
	}, []string{hello, hello}, []string{hello})
	f("closed when idle", 2, func(tr *Transport, url string) {
		wantHello(t, tr, url)
		tr.CloseIdleConnections()
		wantHello(t, tr, url)
	}, []string{hello, hello}, []string{hello})
	f("closed while in use", 2, func(tr *Transport, url string) {
		resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
		if err != nil {
			t.Fatal(err)
		}
		tr.CloseIdleConnections()
		if body, err := io.ReadAll(resp.Body); string(body) != "hello" || err != nil {
			t.Errorf("got %q and error %v, want hello", body, err)
		}
		resp.Body.Close()
		wantHello(t, tr, url)
	}, []string{hello, hello}, []string{hello})
	f("not read to its end", 2, func(tr *Transport, url string) {
		resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, url, nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		resp.Body.Close() // a second Close has no effect
		if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read of a closed body: got error %v", err)
		}
		wantHello(t, tr, url)
	}, []string{hello, hello}, []string{hello})
}

// TestIdleTimeout checks that a connection that was idle for too long is not used. Idle connections
// to servers that are no longer asked are closed when another answer ends.
func TestIdleTimeout(t *testing.T) {
	s := newScript(t, []string{hello, hello}, []string{hello, hello})
	tr := newTransport(t, Options{IdleTimeout: time.Nanosecond})
	wantHello(t, tr, s.url())
	wantHello(t, tr, s.url())
	if got := len(s.made); got != 2 {
		t.Errorf("got %d connections, want 2", got)
	}
	gone := newScript(t, []string{hello, hello})
	wantHello(t, tr, gone.url())
	other := newScript(t, []string{hello, hello})
	wantHello(t, tr, other.url())
	if got := len(tr.mu.idle); got != 1 {
		t.Errorf("got %d idle connections, want the last", got)
	}
}

// TestMaxIdle asks three servers in turn with a limit of two idle connections: two servers keep
// theirs.
func TestMaxIdle(t *testing.T) {
	tr := newTransport(t, Options{MaxIdle: 2})
	thrice := []string{hello, hello, hello}
	var all []*script
	for range 3 {
		all = append(all, newScript(t, thrice, thrice, thrice))
	}
	for range 3 {
		for _, s := range all {
			wantHello(t, tr, s.url())
		}
	}
	made := 0
	for _, s := range all {
		made += len(s.made)
	}
	if got := len(tr.mu.idle); got != 2 || made != 5 {
		t.Errorf("got %d idle connections of %d that were made; want 2 of 5: two kept, and one each time", got, made)
	}
}

// TestNoSecondTry checks that a request is sent again only if a kept connection ends without a byte
// of an answer.
func TestNoSecondTry(t *testing.T) {
	f := func(says, want string, connections ...[]string) {
		t.Helper()
		s := newScript(t, connections...)
		tr := newTransport(t, Options{})
		if len(connections[0]) > 1 {
			wantHello(t, tr, s.url())
		}
		_, err := get(t.Context(), tr, s.url())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", says, err, want)
		}
		if got := len(s.made); got != 1 {
			t.Errorf("%s: got %d connections, want 1", says, got)
		}
	}
	f("no answer on a fresh connection", "closed the connection without an answer", []string{""}, []string{hello})
	f("half a head", "EOF", []string{hello, "HTTP/1.1 200 OK\r\nConte"}, []string{hello})
	f("half a body", "unexpected EOF", []string{hello, hello[:len(hello)-2]}, []string{hello})
}

func TestNotHTTP(t *testing.T) {
	f := func(says, answer, want string) {
		t.Helper()
		s := newScript(t, []string{answer})
		_, err := get(t.Context(), newTransport(t, Options{MaxHeaderBytes: 1000}), s.url())
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %v: %s", says, err, ErrProtocol, want)
		}
	}
	f("a frame of HTTP/2", "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x10\x00\x00\n", "malformed HTTP response")
	f("HTTP/2 by name", "HTTP/2.0 200 OK\r\n\r\n", "answers in HTTP/2.0")
	f("another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", `malformed HTTP response "SSH-2.0-OpenSSH_9.6"`)
	f("a change of protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "switches to another protocol")
	f("a head without end", "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 2000)+"\r\n\r\n", "is too long")
	f("announcements without end", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9), "more than 5 informational answers")
	f("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "Content-Length")
}

// TestContext checks that the context ends a request in every phase, and that the error says so.
func TestContext(t *testing.T) {
	head := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "hel")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	nothing := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for says, h := range map[string]http.HandlerFunc{"before the head": nothing, "in the body": head} {
		srv := httptest.NewTLSServer(h)
		tr := newTransport(t, Options{TLS: &tls.Config{InsecureSkipVerify: true}})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if _, err := get(ctx, tr, srv.URL); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got error %v, want %v", says, err, context.DeadlineExceeded)
		}
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(30*time.Millisecond, cancel)
		if _, err := get(ctx, tr, srv.URL); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got error %v, want %v", says, err, context.Canceled)
		}
		if got := len(tr.mu.idle); got != 0 {
			t.Errorf("%s: got %d idle connections, want none", says, got)
		}
		srv.Close()
	}
	// The second request on this kept connection waits for its answer without a buffer.
	var unanswered atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/nothing" {
			unanswered.Add(1)
			nothing(w, r)
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer srv.Close()
	tr := newTransport(t, Options{TLS: &tls.Config{InsecureSkipVerify: true}})
	for _, want := range []error{context.DeadlineExceeded, context.Canceled} {
		wantHello(t, tr, srv.URL)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		if errors.Is(want, context.Canceled) {
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(30*time.Millisecond, cancel)
		}
		if _, err := get(ctx, tr, srv.URL+"/nothing"); !errors.Is(err, want) {
			t.Errorf("on a kept connection: got error %v, want %v", err, want)
		}
		cancel()
	}
	if got := unanswered.Load(); got > 2 {
		t.Errorf("on a kept connection: asked %d times, want 2, for there is no second try", got)
	}
	// This server accepts connections and sends nothing, not even a TLS handshake.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, newTransport(t, Options{}), "https://"+l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in the handshake: got error %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestTLS checks with both TLS versions that PeerCommonName returns the name in the server's
// certificate, on new and kept connections, and that sessions are not resumed. It also checks the
// errors for a server without TLS and for an unknown scheme.
func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.DidResume {
			t.Error("a session was resumed")
		}
		_, _ = io.WriteString(w, "hello")
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, "system:node:n1")}}
	srv.StartTLS()
	defer srv.Close()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		tr := newTransport(t, Options{TLS: &tls.Config{InsecureSkipVerify: true, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(0)}})
		for i := range 4 {
			resp, err := tr.RoundTrip(httptest.NewRequest(http.MethodGet, srv.URL, nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := PeerCommonName(resp); got != "system:node:n1" {
				t.Errorf("got an answer of %q, want the name in the server's certificate", got)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if i%2 == 1 {
				srv.CloseClientConnections()
			}
		}
	}
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			_, _ = theirs.Read(make([]byte, 1<<16))
			_, _ = io.WriteString(theirs, "HTTP/1.0 400 Bad Request\r\n\r\n")
		}()
		return ours, nil
	}
	if _, err := get(t.Context(), newTransport(t, Options{Dial: dial}), "https://h/"); !errors.Is(err, http.ErrSchemeMismatch) {
		t.Errorf("a server without TLS: got error %v, want %v", err, http.ErrSchemeMismatch)
	}
	if _, err := get(t.Context(), newTransport(t, Options{}), "ftp://h/"); err == nil || !strings.Contains(err.Error(), "write http://HOST:PORT") {
		t.Errorf("got error %v, want one that says what to write", err)
	}
}

// certificate returns a self-signed certificate for name.
func certificate(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
