package server_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/server"
)

// endpoints has one path of each kind: health, discovery, weir's own paths with and without a rule,
// resources, weir's own metrics, and a path that is not served.
var endpoints = []string{
	"/livez", "/readyz", "/apis", "/version", "/openapi/v2", "/metrics", "/metrics/cluster", "/weir/v1/about",
	"/api/v1/model/namespaces/web/pods", "/apis/metrics.k8s.io/v1beta1/pods", "/nothing",
}

// powerful is a caller with all rights that TestHugeBodies needs.
func powerful(c *fakeCluster) asker {
	rights := []string{"list pods.metrics.k8s.io", "list nodes.metrics.k8s.io", "list pods.metrics.k8s.io web",
		"create pods.metrics.k8s.io", "get pods.metrics.k8s.io"}
	for _, path := range endpoints {
		rights = append(rights, "post "+path, "get "+path)
	}
	return bearer(c.user("powerful", rights...))
}

// counter counts the bytes that are read from it.
type counter struct {
	io.Reader
	n atomic.Int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestHugeBodies(t *testing.T) {
	c := newCluster(t)
	as := powerful(c)
	r := start(t, c, nil, func(s *server.Server) {
		model(s)
		s.Handle("/weir/v1/reads", nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%d %v", n, err)
		}))
	})
	c.user("powerful", "post /weir/v1/reads")
	const size = 64 << 20
	for _, r.http2 = range []bool{false, true} {
		for _, path := range endpoints {
			body := &counter{Reader: io.LimitReader(zeros{}, size)}
			r.do(t, http.MethodPost, path, body, as) // the answers differ, but none takes the body
			if n := body.n.Load(); n > size/4 {
				t.Errorf("POST %s (HTTP/2: %t) took %d bytes of %d", path, r.http2, n, size)
			}
		}
	}
	if got := r.do(t, http.MethodPost, "/weir/v1/reads", io.LimitReader(zeros{}, 4<<20), as); got.code == 200 && got.body != "1048576 http: request body too large" {
		t.Errorf("a handler read %q, want 1 MiB and an error", got.body)
	}
	stillServes(t, r)
}

// stillServes fails the test if other callers get no good answer.
func stillServes(t *testing.T, r *run) {
	t.Helper()
	begun := time.Now()
	if got := r.get(t, "/livez", nil); got.code != 200 {
		t.Errorf("GET /livez = %d %s", got.code, got.body)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("GET /livez took %v", took)
	}
}

func dial(t *testing.T, r *run) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", r.Address(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A body that never arrives keeps its connection for BodyTimeout.
func TestStalledBody(t *testing.T) {
	c := newCluster(t)
	powerful(c)
	r := start(t, c, func(o *server.Options, _ *server.Config) { o.BodyTimeout = 300 * time.Millisecond }, model)
	var all sync.WaitGroup
	for _, path := range endpoints {
		for _, length := range []string{"Content-Length: 1000", "Content-Length: 1000000000", "Transfer-Encoding: chunked"} {
			conn := dial(t, r)
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer token-of-powerful\r\n%s\r\n\r\n", path, length)
			all.Go(func() {
				conn.SetReadDeadline(time.Now().Add(20 * time.Second))
				if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("POST %s with %s: the connection is held for ever", path, length)
				}
			})
		}
	}
	stillServes(t, r)
	all.Wait()
}

// The server gives up an answer that nobody reads, and its place among the requests under way is
// free again.
func TestStalledReader(t *testing.T) {
	c := newCluster(t)
	c.user("u", "get /weir/v1/much")
	ended := make(chan error, 2)
	r := start(t, c, func(o *server.Options, _ *server.Config) {
		o.StallTimeout = 200 * time.Millisecond
		o.MaxRequests = 2
	}, func(s *server.Server) {
		s.Handle("/weir/v1/much", nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, zeros{})
			ended <- err
		}))
	})
	fmt.Fprintf(dial(t, r), "GET /weir/v1/much HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer token-of-u\r\n\r\n")
	second := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer second.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.Address()+"/weir/v1/much", nil)
	if err != nil {
		t.Fatal(err)
	}
	bearer("token-of-u")(request, nil)
	response, err := second.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Errorf("the second reader speaks %s, want HTTP/2", response.Proto)
	}
	for range 2 {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("zeros ended")
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the handler is held for ever by a client that does not read")
		}
	}
	stillServes(t, r)
}

func TestManyHeaderLines(t *testing.T) {
	c := newCluster(t)
	r := start(t, c, nil, model)
	ask := func(line string, n int) string {
		conn := dial(t, r)
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		go fmt.Fprintf(conn, "GET /metrics/cluster HTTP/1.1\r\nHost: weir\r\n%s\r\n", strings.Repeat(line, n))
		status, _ := bufio.NewReader(conn).ReadString('\n')
		return strings.TrimSpace(status)
	}
	if got := ask("X-A: b\r\n", 10000); got != "HTTP/1.1 401 Unauthorized" && got != "HTTP/1.1 431 Request Header Fields Too Large" {
		t.Errorf("10000 header lines: %q", got)
	}
	if got, want := ask("X-A: "+strings.Repeat("b", 1000)+"\r\n", 10000), "HTTP/1.1 431 Request Header Fields Too Large"; got != want {
		t.Errorf("10 MB of headers: %q, want %q", got, want)
	}
	stillServes(t, r)
}

// A rule reads the query before authentication: a huge query is refused before that.
func TestHugeQuery(t *testing.T) {
	c := newCluster(t)
	as := bearer(c.user("u", "list pods.metrics.k8s.io web"))
	var ruled atomic.Int64
	r := start(t, c, nil, func(s *server.Server) {
		s.Handle("/weir/v1/list", func(*http.Request) []rights.Right {
			ruled.Add(1)
			return []rights.Right{rights.ListPods("web")}
		}, echo)
	})
	query := func(n int) string { return "/weir/v1/list?" + strings.Repeat("*,", n/2) }
	if got := r.get(t, query(32<<10), as); got.code != 200 {
		t.Errorf("32 KiB: got %d %s, want 200", got.code, got.body)
	}
	const want = "the query has 32770 bytes, at most 32768 are allowed: use a shorter selector\n"
	if got := r.get(t, query(32<<10+2), nil); got.code != 414 || got.body != want {
		t.Errorf("more: got %d %s, want 414 %s", got.code, got.body, want)
	}
	if n := ruled.Load(); n != 1 {
		t.Errorf("the rule was asked %d times, want once", n)
	}
}

func TestGarbage(t *testing.T) {
	r := start(t, newCluster(t), nil, nil)
	noise := make([]byte, 1<<16)
	rand.Read(noise)
	for name, bytes := range map[string][]byte{
		"noise":            noise,
		"plain HTTP":       []byte("GET / HTTP/1.1\r\nHost: weir\r\n\r\n"),
		"a TLS record":     {22, 3, 1, 0, 5, 1, 0, 0, 1, 0},
		"an endless hello": append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, noise...),
	} {
		conn, err := net.Dial("tcp", r.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.Write(bytes)
		conn.(*net.TCPConn).CloseWrite()
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection is held", name)
		}
	}
	// Noise inside TLS.
	conn := dial(t, r)
	conn.Write(noise)
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	status, _ := bufio.NewReader(conn).ReadString('\n')
	if status != "" && !strings.HasPrefix(status, "HTTP/1.1 400") {
		t.Errorf("noise inside TLS is answered %q", status)
	}
	stillServes(t, r)
}

// Hundreds of clients that never finish what they began disturb no other client, and they are cut
// off when the time for headers is over.
func TestSlowloris(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until the time for headers is over")
	}
	t.Parallel()
	r := start(t, newCluster(t), nil, nil)
	var all sync.WaitGroup
	for i := range 300 {
		var conn net.Conn
		if i%3 == 0 {
			raw, err := net.Dial("tcp", r.Address()) // sends no TLS hello
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { raw.Close() })
			conn = raw
		} else {
			conn = dial(t, r)
			fmt.Fprint(conn, "GET /livez HTTP/1.1\r\nHost: weir\r\nX-A: ")
		}
		all.Go(func() {
			conn.SetReadDeadline(time.Now().Add(50 * time.Second))
			if i%3 == 1 { // sends one byte at a time
				go func() {
					for range time.Tick(100 * time.Millisecond) {
						if _, err := conn.Write([]byte("b")); err != nil {
							return
						}
					}
				}()
			}
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection is held for ever")
			}
			conn.Close()
		})
	}
	for range 20 {
		stillServes(t, r)
	}
	all.Wait()
}

// stalledStreams opens one HTTP/2 connection, on which n requests of a caller get no byte of their
// answers, because the client's window is 0. It returns when each is answered with a status: 200 is
// counted, and holds its place.
func stalledStreams(t *testing.T, r *run, n int, token, path string) (held int) {
	t.Helper()
	conn, err := tls.Dial("tcp", r.Address(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for i := range n {
		block.Reset()
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "weir"}, {":path", path}, {"authorization", "Bearer " + token}} {
			if err := fields.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
	}
	for answered := 0; answered < n; {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("after %d answers: %v", answered, err)
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok {
			answered++
			if h.PseudoValue("status") == "200" {
				held++
			}
		}
	}
	return held
}

// TestStalledCallers lets callers that may only discover hold every place that they get, by answers
// that they do not read: first one caller with 500 requests over five connections, then six callers.
// The number of places is the default.
func TestStalledCallers(t *testing.T) {
	const path = "/openapi/v2"
	c := newCluster(t)
	reads := []string{"list pods.metrics.k8s.io", "list nodes.metrics.k8s.io"}
	direct, proxied := bearer(c.user("direct", reads...)), behindProxy(c.proxyCA.client(t, "front-proxy-client"), "proxied")
	c.user("proxied", reads...)
	r := start(t, c, func(o *server.Options, config *server.Config) {
		o.StallTimeout = time.Minute
		describeAPI(o, config)
	}, func(s *server.Server) { installAPI(t, s); model(s) })
	answers := func(when, path string, as asker, code int) answer {
		got := r.get(t, path, as)
		if got.code != code {
			t.Errorf("%s: GET %s = %d %s, want %d", when, path, got.code, got.body, code)
		}
		return got
	}
	const one, all = "beside one stalled caller", "beside all stalled callers"
	held, token := 0, c.user("stalled-0", "get "+path)
	for range 5 {
		held += stalledStreams(t, r, 100, token, path)
	}
	if held != 50 {
		t.Errorf("one caller holds %d places of 400, want an eighth", held)
	}
	answers(one, "/livez", nil, 200)
	answers(one, "/readyz", nil, 200)
	answers(one, "/metrics/cluster", direct, 200)
	answers(one, "/metrics/cluster", proxied, 200)
	for i := range 5 {
		if held := stalledStreams(t, r, 50, c.user(fmt.Sprintf("stalled-%d", i+1), "get "+path), path); held != 50 {
			t.Fatalf("another caller holds %d places, want 50", held)
		}
	}
	answers(all, "/livez", nil, 200)
	answers(all, "/readyz", nil, 200)
	answers(all, "/metrics/cluster", proxied, 200)
	if got := answers(all, "/metrics/cluster", direct, 429); got.header.Get("Retry-After") != "1" || !strings.Contains(got.body, "300 requests are under way") {
		t.Errorf("%s: a direct caller got %v %q, want the reason", all, got.header, got.body)
	}
}

// TestSlowReader checks that a client which takes longer than StallTimeout for the whole answer, and
// not for a part of it, gets all of it.
func TestSlowReader(t *testing.T) {
	c := newCluster(t)
	as := bearer(c.user("u", "get /weir/v1/much"))
	const size = 8 << 20
	r := start(t, c, func(o *server.Options, _ *server.Config) { o.StallTimeout = 2 * time.Second }, func(s *server.Server) {
		s.Handle("/weir/v1/much", nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, size))
		}))
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.Address()+"/weir/v1/much", nil)
	if err != nil {
		t.Fatal(err)
	}
	as(request, nil)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	tick := time.NewTicker(130 * time.Millisecond)
	defer tick.Stop()
	began, read := time.Now(), int64(0)
	for read < size {
		<-tick.C
		n, err := io.CopyN(io.Discard, response.Body, min(256<<10, size-read))
		if read += n; err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
	}
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("read in %s: the test does not test anything", took)
	}
}
