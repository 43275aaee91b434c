package simulator

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/background"
)

// serveFleet serves f until the test ends, with a clock that always shows now.
// It returns the port.
func serveFleet(t *testing.T, f *Fleet, a *Authority, now time.Time) int {
	t.Helper()
	return serveFleetAt(t, f, a, func() time.Time { return now })
}

// serveFleetAt is like serveFleet, with a clock that moves.
func serveFleetAt(t *testing.T, f *Fleet, a *Authority, now func() time.Time) int {
	t.Helper()
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(ServerOptions{Fleet: f, Authority: a, Now: now, Grace: 5 * time.Second})
	background.Run(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	return l.Addr().(*net.TCPAddr).Port
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func client(t *testing.T, a *Authority) *http.Client {
	tr := &http.Transport{DisableCompression: true, ForceAttemptHTTP2: true}
	if a != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(a.PEM()) {
			t.Fatal("the authority's PEM holds no certificate")
		}
		tr.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}

func TestServerAnswersForEveryAddress(t *testing.T) {
	f := newFleet(t, Options{Nodes: 300, Pods: 3})
	a := newAuthority(t)
	now := start.Add(time.Minute)
	port := serveFleet(t, f, a, now)
	c := client(t, a)
	for _, i := range []int{0, 1, 254, 299} {
		n := f.Nodes()[i]
		base := fmt.Sprintf("https://%v:%d", n.Address, port)
		for e := range Endpoint(numEndpoints) {
			if e == StatsContainer {
				continue
			}
			r, body := get(t, c, base+e.String())
			if want := string(f.Append(nil, n, e, now)); r.StatusCode != 200 || body != want {
				t.Errorf("%s%v: got status %d and %d bytes, want 200 and %d", n.Name, e, r.StatusCode, len(body), len(want))
			}
			if got := r.Header.Get("Content-Type"); got != e.ContentType() {
				t.Errorf("%v: got type %q, want %q", e, got, e.ContentType())
			}
			if got, want := r.TLS.PeerCertificates[0].Subject.CommonName, "system:node:"+n.Name; got != want {
				t.Errorf("%v: got certificate of %q, want %q", n.Address, got, want)
			}
		}
		r, err := c.Post(base+"/stats/container/", "application/json", strings.NewReader(`{"containerName":"/","subcontainers":true,"num_stats":1}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if want := string(f.Append(nil, n, StatsContainer, now)); err != nil || string(body) != want {
			t.Errorf("%s: POST /stats/container/: got %d bytes, error %v, want %d", n.Name, len(body), err, len(want))
		}
	}
	base := fmt.Sprintf("https://%v:%d", f.Nodes()[0].Address, port)
	if _, body := get(t, c, base+"/healthz"); body != "ok" {
		t.Errorf("/healthz: got %q, want ok", body)
	}
	if r, _ := get(t, c, base+"/stats/container/"); r.StatusCode != 405 {
		t.Errorf("GET /stats/container/: got %d, want 405", r.StatusCode)
	}
	if r, _ := get(t, c, base+"/nothing"); r.StatusCode != 404 {
		t.Errorf("/nothing: got %d, want 404", r.StatusCode)
	}
}

func TestServerCompressesWhenAsked(t *testing.T) {
	f := newFleet(t, Options{})
	port := serveFleet(t, f, nil, start)
	c := client(t, nil)
	request, err := http.NewRequest("GET", fmt.Sprintf("http://127.1.0.1:%d/metrics/resource", port), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	r, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatalf("answer is not gzip: %v", err)
	}
	got, err := io.ReadAll(z)
	if want := string(f.Payload("node-0001", Resource, start)); err != nil || string(got) != want {
		t.Errorf("got %d bytes, error %v, want %d", len(got), err, len(want))
	}
}

func TestServerAddressWithoutNode(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2})
	port := serveFleet(t, f, nil, start)
	r, body := get(t, client(t, nil), fmt.Sprintf("http://127.1.0.3:%d/metrics/resource", port))
	if r.StatusCode != 404 || !strings.Contains(body, "no node has address 127.1.0.3") {
		t.Errorf("got %d %q, want 404 that says so", r.StatusCode, body)
	}
	a := newAuthority(t)
	port = serveFleet(t, f, a, start)
	if _, err := client(t, a).Get(fmt.Sprintf("https://127.1.0.3:%d/", port)); err == nil {
		t.Error("a node that does not exist has a certificate")
	}
}

func TestServerFaults(t *testing.T) {
	f := newFleet(t, Options{Nodes: 4}, "hang node=node-0002", "down node=node-0003", "slow node=node-0004 delay=20ms")
	port := serveFleet(t, f, nil, start)
	c := client(t, nil)
	url := func(n int) string { return fmt.Sprintf("http://127.1.0.%d:%d/metrics/resource", n, port) }

	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, "GET", url(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan error, 1)
	go func() {
		_, err := c.Do(request)
		hung <- err
	}()
	// While one node hangs, the others answer.
	if r, _ := get(t, c, url(1)); r.StatusCode != 200 {
		t.Errorf("healthy node: got %d, want 200", r.StatusCode)
	}
	begin := time.Now()
	if r, _ := get(t, c, url(4)); r.StatusCode != 200 || time.Since(begin) < 20*time.Millisecond {
		t.Errorf("slow node: got %d after %v, want 200 after 20 ms at least", r.StatusCode, time.Since(begin))
	}
	if _, err := c.Get(url(3)); err == nil {
		t.Error("the node that is down answers")
	}
	select {
	case err := <-hung:
		t.Errorf("the node that hangs ended the request: %v", err)
	default:
	}
	cancel()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Errorf("hung request: got error %v, want that it was cancelled", err)
	}
}

// TestServerRefuses tests the faults in which a node gives no answer, or the
// answer of another node.
func TestServerRefuses(t *testing.T) {
	f := newFleet(t, Options{Nodes: 5}, "refuse node=node-0001", "refuse node=node-0002 style=forbidden", "impostor node=node-0003 as=node-0005", "scrapeerror node=node-0004")
	a := newAuthority(t)
	now := start.Add(time.Second)
	port := serveFleet(t, f, a, now)
	c := client(t, a)
	url := func(n int, path string) string { return fmt.Sprintf("https://127.1.0.%d:%d%s", n, port, path) }
	for n, want := range map[int]int{1: 401, 2: 403, 3: 200, 4: 200} {
		if r, _ := get(t, c, url(n, "/metrics/resource")); r.StatusCode != want {
			t.Errorf("node %d: got %d, want %d", n, r.StatusCode, want)
		}
	}
	r, body := get(t, c, url(3, "/stats/summary"))
	if got := r.TLS.PeerCertificates[0].Subject.CommonName; got != "system:node:node-0005" || body != string(f.Payload("node-0005", Summary, now)) {
		t.Errorf("the impostor shows the certificate of %s and %d bytes, want node-0005's", got, len(body))
	}
	if r, body := get(t, c, url(4, "/stats/summary")); r.StatusCode != 500 || !strings.HasPrefix(body, "Internal Error: ") {
		t.Errorf("/stats/summary of a node without its runtime: got %d %.50q, want 500", r.StatusCode, body)
	}
	if r, _ := get(t, c, url(4, "/metrics/cadvisor")); r.StatusCode != 200 {
		t.Errorf("/metrics/cadvisor of a node without its runtime: got %d, want 200", r.StatusCode)
	}
}

func TestServerShowsWrongCertificates(t *testing.T) {
	f := newFleet(t, Options{Nodes: 3}, "certificate node=node-0001", "certificate node=node-0002 style=wrong-name", "certificate node=node-0003 style=expired")
	a := newAuthority(t)
	port := serveFleet(t, f, a, start)
	for n, want := range map[int]string{1: "unknown authority", 2: "IP SANs", 3: "expired"} {
		_, err := client(t, a).Get(fmt.Sprintf("https://127.1.0.%d:%d/pods", n, port))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("node %d: got error %v, want one that says %q", n, err, want)
		}
	}
}

// TestConnectionsDoNotOutliveTheirCertificate checks that a client with an open
// connection also gets the new certificate.
func TestConnectionsDoNotOutliveTheirCertificate(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2}, "impostor node=node-0001 as=node-0002 at=10s")
	a := newAuthority(t)
	var now atomic.Int64
	now.Store(start.UnixNano())
	port := serveFleetAt(t, f, a, func() time.Time { return time.Unix(0, now.Load()) })
	c := client(t, a)
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = false // weir's scraper speaks HTTP/1.1
	for _, step := range []struct {
		at   float64
		want string
	}{{0, "node-0001"}, {11, "node-0002"}} {
		now.Store(after(step.at).UnixNano())
		r, _ := get(t, c, fmt.Sprintf("https://127.1.0.1:%d/pods", port))
		if got := r.TLS.PeerCertificates[0].Subject.CommonName; got != "system:node:"+step.want {
			t.Errorf("after %vs: got the certificate of %s, want %s", step.at, got, step.want)
		}
	}
}

// TestServeEndsWhileANodeHangs checks that a hanging request does not prevent
// the end of the process.
func TestServeEndsWhileANodeHangs(t *testing.T) {
	f := newFleet(t, Options{}, "hang node=node-0001")
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan struct{})
	s := NewServer(ServerOptions{Fleet: f, Now: announcing(arrived), Grace: time.Minute})
	stop := background.Run(t, func(ctx context.Context) error { return s.Serve(ctx, l) })
	hung := make(chan error, 1)
	c := client(t, nil)
	go func() {
		_, err := c.Get(fmt.Sprintf("http://127.1.0.1:%d/pods", l.Addr().(*net.TCPAddr).Port))
		hung <- err
	}()
	<-arrived // the connection is accepted
	<-arrived // the connection's time is read
	<-arrived // the request is being handled
	stop()
	if err := <-hung; err == nil {
		t.Error("the request got an answer")
	}
}

// announcing returns a clock that sends to c each time it is read.
func announcing(c chan<- struct{}) func() time.Time {
	return func() time.Time {
		c <- struct{}{}
		return start
	}
}

func TestTruthHandler(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2, Pods: 3})
	now := start.Add(time.Hour)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(ServerOptions{Fleet: f, Now: func() time.Time { return now }})
	background.Run(t, func(ctx context.Context) error { return s.ServeTruth(ctx, l) })
	c := client(t, nil)
	ask := func(query string) (list []Usage) {
		t.Helper()
		_, body := get(t, c, "http://"+l.Addr().String()+query)
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("%s: %v in %q", query, err, body)
		}
		return list
	}
	from, to := start.Add(time.Minute), start.Add(2*time.Minute)
	got := ask(fmt.Sprintf("/truth?from=%d&to=%d", from.UnixNano(), to.UnixNano()))
	if want := f.Truth(from, to); len(got) != 12 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("/truth: got %d usages, want the 12 of Fleet.Truth", len(got))
	}
	for _, u := range got {
		if u.Rate != float64(u.CPUTo-u.CPUFrom)/6e10 || !u.Current || u.To != to.UnixNano() || u.From != from.UnixNano() {
			t.Errorf("%+v does not add up", u)
		}
	}
	if got := ask(fmt.Sprintf("/truth/at?t=%d&node=node-0002", from.UnixNano())); len(got) != 6 || got[0].Node != "node-0002" || got[0].CPUFrom != got[0].CPUTo || got[0].Rate != 0 {
		t.Errorf("/truth/at: got %+v, want the 6 of node-0002 at one moment", got)
	}
	if got := ask("/truth"); got[0].From != start.UnixNano() || got[0].To != now.UnixNano() {
		t.Errorf("/truth: got a window from %d to %d, want from the start to now", got[0].From, got[0].To)
	}
	for query, want := range map[string]int{"/truth?from=x": 400, "/truth?from=9&to=8": 400, "/truth?node=x": 404, "/truth/at?t=-1": 400, "/else": 404} {
		if r, _ := get(t, c, "http://"+l.Addr().String()+query); r.StatusCode != want {
			t.Errorf("%s: got %d, want %d", query, r.StatusCode, want)
		}
	}
}

func TestSource(t *testing.T) {
	f := func(o Options, file, ca string, insecure bool, want string) {
		t.Helper()
		if got := newFleet(t, o).Source(10250, file, ca, insecure); got != want {
			t.Errorf("Source(%q, %q, %v) = %q, want %q", file, ca, insecure, got, want)
		}
	}
	f(Options{Nodes: 2}, "", "ca.pem", false, "kubelet:?targets=node-0001=127.1.0.1:10250,node-0002=127.1.0.2:10250&ca=ca.pem")
	f(Options{Nodes: 200}, "t.txt", "", false, "kubelet:?targets=@t.txt&insecure-tls=true")
	f(Options{Nodes: 200, NamesAreAddresses: true}, "", "", true, "kubelet:?targets=127.1.0.1-127.1.0.200:10250&scheme=http")
	if got, want := string(newFleet(t, Options{Nodes: 2}).TargetsFile(1)), "node-0001=127.1.0.1:1\nnode-0002=127.1.0.2:1\n"; got != want {
		t.Errorf("TargetsFile = %q, want %q", got, want)
	}
}
