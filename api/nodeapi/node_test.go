package nodeapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noPressure is the report of the agent of n1.
var noPressure = &evictionreport.EvictionReport{
	Node: "n1", Mode: "observe", State: evictionreport.Normal, Summary: "n1: no threshold is met", At: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC),
	Signals: []evictionreport.Signal{{Name: "memory.available", Unit: evictionreport.Bytes, Thresholds: []evictionreport.Threshold{{Text: "memory.available<100Mi", State: evictionreport.Unknown}}}},
}

// oneGPU are the devices of n1.
var oneGPU = &cluster.NodeDevices{
	Node: "n1", At: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Allocatable: []cluster.ResourceDevices{{Resource: "example.com/gpu", Devices: []string{"g0", "g1"}}},
	Containers: []cluster.ContainerDevices{{Namespace: "shop", Pod: "web-1", Container: "app", Devices: []cluster.ResourceDevices{{Resource: "example.com/gpu", Devices: []string{"g1"}}},
		Claimed: []cluster.ClaimedDevice{{Claim: "nic", Driver: "nic.example.com", Pool: "n1", Device: "eth7"}}}},
}

// agent is the agent of n1.
func agent() http.Handler {
	h := NewHandler(Options{
		Node: "n1", Eviction: func() *evictionreport.EvictionReport { return noPressure },
		PodCgroups: func(context.Context) (any, error) { return map[string]int{"podsFound": 7}, nil },
		Devices:    func(context.Context) (*cluster.NodeDevices, error) { return oneGPU, nil },
	})
	mux := http.NewServeMux()
	for _, path := range Paths() {
		mux.Handle(path, h)
	}
	return mux
}

// serve serves h until the test ends, and returns its URL and transport.
func serve(t *testing.T, h http.Handler) (url string, carrier http.RoundTripper) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL, s.Client().Transport
}

// ask returns a client of the API that h serves.
func ask(t *testing.T, h http.Handler) *Client {
	t.Helper()
	url, carrier := serve(t, h)
	c, err := weirdev.NewClient(url, &http.Client{Transport: carrier})
	if err != nil {
		t.Fatal(err)
	}
	return &Client{c}
}

// through returns a proxy to one agent. It knows only n1.
func through(url string, carrier http.RoundTripper) *Proxy {
	p := NewProxy(func(node string) (string, http.RoundTripper, error) {
		switch node {
		case "n1", "moved":
			return url, carrier, nil
		case "bare":
			return "", nil, ErrNoAgents
		case "homeless":
			return "", nil, errors.New("none of its 0 addresses is of type InternalIP")
		}
		return "", nil, fmt.Errorf("find %s: %w", node, ErrUnknown)
	})
	p.maxBytes = 4096
	return p
}

// The agent's report arrives unchanged, directly and through the cluster's weir.
func TestAnswers(t *testing.T) {
	direct := ask(t, agent())
	proxied := ask(t, through(serve(t, agent())))
	for name, c := range map[string]*Client{"direct": direct, "proxied": proxied} {
		got, err := c.Eviction(t.Context(), "n1")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cmptest.Equal(t, name, noPressure, got)
		cgroups, err := c.PodCgroups(t.Context(), "n1")
		if err != nil || strings.TrimSpace(string(cgroups)) != `{"podsFound":7}` {
			t.Errorf("%s: got %s, %v", name, cgroups, err)
		}
		devices, err := c.Devices(t.Context(), "n1")
		if diff := cmp.Diff(oneGPU, devices); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	report, err := through(serve(t, agent())).Eviction(t.Context(), "n1")
	if diff := cmp.Diff(noPressure, report); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Each failure of an agent has its status, its sentence and its next step.
func TestFailures(t *testing.T) {
	says := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		})
	}
	f := func(h http.Handler, node string, status int, message, hint string) {
		t.Helper()
		_, err := ask(t, through(serve(t, h))).Eviction(t.Context(), node)
		check(t, err, status, message, hint)
	}
	f(agent(), "n9", 404, "weir does not know node n9", "kubectl get nodes")
	f(agent(), "bare", 503, "asks no agents", "components/agent")
	f(agent(), "homeless", 503, "find the agent on node homeless: none of its 0 addresses", "spec.nodeName=homeless")
	f(agent(), "moved", 404, "the agent on node moved reports: this weir is on node n1, not on moved", "Ask for n1")
	f(says(401, "Unauthorized"), "n1", 502, "does not know weir's token: Unauthorized", "tokenreviews")
	f(says(403, `{"kind":"Status","message":"needs: get nodes/eviction"}`), "n1", 502, "refuses weir: needs: get nodes/eviction", "weir:agents-reader")
	f(says(404, "404 page not found"), "n1", 502, "not an agent of this version: it returned 404 404 page not found", "--agent-port")
	f(says(200, "<html>"), "n1", 502, "read the answer about evictions on node n1", "--agent-port")
	f(says(200, `"`+strings.Repeat("x", 5000)+`"`), "n1", 502, "its answer is too long", "log")
	f(says(200, `{"apiVersion":"weir.dev/v1alpha1","kind":"PodUsageList"}`), "n1", 0, "got kind \"PodUsageList\" of \"weir.dev/v1alpha1\", want EvictionExplanation", "")
	f(http.RedirectHandler("http://192.0.2.1/steal", http.StatusFound), "n1", 502, "it returned 302", "--agent-port")
}

// check compares an error with the expected problem: its status and parts of its sentences. With
// status zero, no error is expected.
func check(t *testing.T, err error, status int, message, hint string) {
	t.Helper()
	p, ok := errors.AsType[*weirdev.Problem](err)
	switch {
	case err == nil || !strings.Contains(err.Error(), message):
		t.Errorf("got %v, want %q", err, message)
	case ok != (status != 0), ok && (p.Status != status || !strings.Contains(p.Hint, hint)):
		t.Errorf("got %+v, want status %d and a hint with %q", p, status, hint)
	}
}

func TestNobodyAnswers(t *testing.T) {
	s := httptest.NewServer(agent())
	s.Close() // its port is free now
	_, err := through(s.URL, http.DefaultTransport).Eviction(t.Context(), "n1")
	check(t, err, 503, "no agent answers on node n1", "components/agent")

	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	impatient := through(serve(t, hangs))
	impatient.timeout = time.Millisecond
	_, err = impatient.Eviction(t.Context(), "n1")
	check(t, err, 504, "did not answer in time", "overloaded")
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(agent())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the client closes the connection
	s.StartTLS()
	defer s.Close()
	outsider := &http.Transport{} // it trusts only the system's authorities
	defer outsider.CloseIdleConnections()
	_, err := through(s.URL, outsider).Eviction(t.Context(), "n1")
	check(t, err, 502, "a certificate that weir does not trust", "--agent-ca-file")
	if _, err := through(s.URL, s.Client().Transport).Eviction(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
	plain, _ := serve(t, agent())
	_, err = through(strings.Replace(plain, "http:", "https:", 1), s.Client().Transport).Eviction(t.Context(), "n1")
	check(t, err, 502, "does not use TLS", "--agent-port")
}

// A node's name leads only to that node, and no header of the caller is forwarded.
func TestGoesNowhereElse(t *testing.T) {
	var asked []string
	url, carrier := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization")+r.Header.Get("X-Remote-User"))
		w.WriteHeader(http.StatusNotFound)
	}))
	p := NewProxy(func(string) (string, http.RoundTripper, error) { return url, carrier, nil })
	f := func(method, path string, status int, want ...string) {
		t.Helper()
		asked = nil
		r := httptest.NewRequest(method, path, strings.NewReader("body"))
		r.Header.Set("Authorization", "Bearer reader")
		r.Header.Set("X-Remote-User", "reader")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if diff := cmp.Diff(want, asked); w.Code != status || diff != "" {
			t.Errorf("%s %s: got %d, want %d; asked (-want +got):\n%s", method, path, w.Code, status, diff)
		}
	}
	const below = "/apis/weir.dev/v1alpha1/nodes/"
	f("GET", below+"n1/eviction", 502, "GET "+below+"n1/eviction ")
	f("GET", below+"n1/eviction?timeout=1s", 502, "GET "+below+"n1/eviction ")
	f("GET", below+"a%2F..%2F..%2Fb/podcgroups", 502, "GET "+below+"a%2F..%2F..%2Fb/podcgroups ")
	f("GET", below+"n1%3Fx=y%23/eviction", 502, "GET "+below+"n1%3Fx=y%23/eviction ")
	f("GET", below+"../eviction", 404)
	f("GET", below+"%2E%2E/eviction", 404)
	f("GET", below+"/eviction", 404)
	f("GET", below+"n1/eviction/", 404)
	f("GET", below+"n1/explanation", 404)
	f("GET", "/metrics", 404)
	f("GET", below+"n1/eviction?all", 400)
	f("POST", below+"n1/eviction", 405)
	f("DELETE", below+"n1/podcgroups", 405)
}

// An agent that serves only one subresource answers with an error for the other.
func TestPartialAgent(t *testing.T) {
	c := ask(t, NewHandler(Options{Node: "n1", PodCgroups: func(context.Context) (any, error) { return nil, errors.New("open /sys/fs/cgroup: permission denied") }}))
	_, err := c.Eviction(t.Context(), "n1")
	check(t, err, 404, "this weir does not know evictions on node n1", "weir agent")
	_, err = c.PodCgroups(t.Context(), "n1")
	check(t, err, 500, "open /sys/fs/cgroup: permission denied", "log")
	_, err = c.Eviction(t.Context(), "n2")
	check(t, err, 404, "this weir is on node n1, not on n2", "Ask for n1")
}

// Agents that send long answers cannot fill the memory, however many requests ask for them.
func TestFewAgentsAreAskedAtOnce(t *testing.T) {
	var now, most atomic.Int64
	full := make(chan struct{})
	fill := sync.OnceFunc(func() { close(full) })
	url, carrier := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == maxRequests {
			fill()
		}
		<-full
		agent().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/apis/weir.dev/v1alpha1/nodes/n1/eviction", nil))
	}))
	p := through(url, carrier)
	p.timeout = time.Minute
	var all sync.WaitGroup
	for range 3 * maxRequests {
		all.Go(func() {
			if _, err := p.Eviction(t.Context(), "n1"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != maxRequests {
		t.Errorf("%d agents were asked at the same time, want %d", most.Load(), maxRequests)
	}
	for range maxRequests {
		p.places <- struct{}{}
	}
	p.timeout = time.Millisecond
	_, err := p.Eviction(t.Context(), "n1")
	check(t, err, 503, "16 other requests to agents did not end in time", "again")
}

// An answer that is small when compressed and large when unpacked is cut too.
func TestBomb(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprintf(z, "%q", strings.Repeat("x", 1<<20))
	z.Close()
	_, err := through(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	}))).Eviction(t.Context(), "n1")
	check(t, err, 502, "its answer is too long", "log")
}

// The request parsed from any path leads to the same request again.
func FuzzParseRequest(f *testing.F) {
	f.Add("/apis/weir.dev/v1alpha1/nodes/n1/eviction", "")
	f.Add("/apis/weir.dev/v1alpha1/nodes/a%2Fb/podcgroups", "limit=1")
	f.Fuzz(func(t *testing.T, path, query string) {
		u, err := url.Parse(path)
		if err != nil {
			return
		}
		u.RawQuery = query
		r, err := ParseRequest(&http.Request{Method: "GET", URL: u})
		if err != nil {
			if p, ok := errors.AsType[*weirdev.Problem](err); !ok || p.Hint == "" {
				t.Errorf("%q: got %v, want a problem with a hint", path, err)
			}
			return
		}
		again, err := url.Parse(weirdev.Path + strings.Join([]string{"nodes", url.PathEscape(r.Node), r.Subresource}, "/"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseRequest(&http.Request{Method: "GET", URL: again})
		if err != nil || got != r {
			t.Errorf("%q is %+v, and that is %+v, %v", path, r, got, err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
