package server_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/replicas/forward"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/server"
)

// replica is a server that shows which replica answered. The test chooses its leader.
type replica struct {
	*run
	known  *peer.Certificate
	served atomic.Int64 // measurements that this replica showed
	leader atomic.Pointer[replica]
}

func newReplica(t *testing.T, c *fakeCluster, name string) *replica {
	t.Helper()
	known, err := peer.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	p := &replica{known: known}
	transports := peer.NewTransports(&rest.Config{BearerToken: "token-of-weir"})
	t.Cleanup(transports.Close)
	wrap := forward.New(forward.Options{Leader: transports.Route(func() (string, []byte, bool) {
		l := p.leader.Load()
		if l == nil {
			return "", nil, false
		}
		return l.Address(), l.known.PEM(), l == p
	}), Timeout: time.Minute})
	p.run = start(t, c, func(_ *server.Options, config *server.Config) { config.Data, config.Peer = wrap, known }, func(s *server.Server) {
		show := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.served.Add(1)
			fmt.Fprintf(w, "%s shows %s", name, r.URL.RequestURI())
		})
		s.Handle("/api/v1/model/{rest...}", func(*http.Request) []rights.Right { return []rights.Right{rights.ListPods("")} }, show)
		s.Handle("/weir/v1/about", nil, show)
	})
	return p
}

func TestReplicasAnswerAsOne(t *testing.T) {
	c := newCluster(t)
	c.user("weir", "list pods.metrics.k8s.io")
	as := bearer(c.user("jane", "list pods.metrics.k8s.io", "get /weir/v1/about"))
	a, b := newReplica(t, c, "a"), newReplica(t, c, "b")
	const path = "/api/v1/model/namespaces/web%2Fx/pods?start=1;2&end=%2F"
	expect := func(what string, p *replica, as asker, code int, body string) {
		t.Helper()
		if got := p.get(t, path, as); got.code != code || got.message() != body {
			t.Errorf("%s: got %d %s\nwant %d %s", what, got.code, got.message(), code, body)
		}
	}
	expect("without a leader", b, as, 200, "b shows "+path)
	a.leader.Store(a)
	b.leader.Store(a)
	expect("the leader", a, as, 200, "a shows "+path)
	expect("the other", b, as, 200, "a shows "+path)
	for name, values := range b.get(t, path, as).header {
		if len(values) > 1 {
			t.Errorf("header %s is said by both: %q", name, values)
		}
	}
	if got := b.get(t, "/weir/v1/about", as); got.body != "b shows /weir/v1/about" {
		t.Errorf("what is no measurement: %s, want it from b itself", got.body)
	}
	// The replica that forwards authenticates and authorizes its own callers.
	expect("nobody", b, nil, 401, "Unauthorized")
	expect("one without the right", b, bearer(c.user("eve")), 403,
		`forbidden: User "eve" cannot get path "/api/v1/model/namespaces/web/x/pods": needs: list pods.metrics.k8s.io in all namespaces`)
	// If each believes that the other leads, they still answer.
	a.leader.Store(b)
	expect("in a circle", b, as, 200, "a shows "+path)
	expect("in a circle", a, as, 200, "b shows "+path)
	a.leader.Store(a)
	// If the leader refuses the other replica, that one answers itself.
	c.mu.Lock()
	delete(c.tokens, "token-of-weir")
	c.mu.Unlock()
	expect("refused by the leader", b, as, 200, "b shows "+path)
	c.user("weir")
	expect("let in again", b, as, 200, "a shows "+path)
	// A server at the leader's address with another certificate is not the leader.
	forged := newReplica(t, c, "forged")
	impostor := &replica{run: forged.run, known: a.known}
	b.leader.Store(impostor)
	expect("an impostor leads", b, as, 200, "b shows "+path)
	if n := forged.served.Load(); n != 0 {
		t.Errorf("the impostor was asked %d times", n)
	}
}

// Clients that ask both replicas all the time get every answer, also when the leader ends.
func TestLeaderEndsWithoutLoss(t *testing.T) {
	c := newCluster(t)
	c.user("weir", "list pods.metrics.k8s.io")
	as := bearer(c.user("jane", "list pods.metrics.k8s.io"))
	a, b := newReplica(t, c, "a"), newReplica(t, c, "b")
	a.leader.Store(a)
	b.leader.Store(a)
	var readers sync.WaitGroup
	done := make(chan struct{})
	var fromA, fromB, back atomic.Int64
	for range 4 {
		readers.Go(func() {
			sawB := false
			for {
				select {
				case <-done:
					return
				default:
				}
				switch got := b.get(t, "/api/v1/model/", as); got.body {
				case "a shows /api/v1/model/":
					fromA.Add(1)
					if sawB {
						back.Add(1)
					}
				case "b shows /api/v1/model/":
					sawB = true
					fromB.Add(1)
				default:
					t.Errorf("got %d %s", got.code, got.body)
				}
			}
		})
	}
	until(t, "the leader answered", func() bool { return fromA.Load() > 20 })
	a.stop()
	until(t, "the other answered", func() bool { return fromB.Load() > 20 })
	close(done)
	readers.Wait()
	if n := back.Load(); n > 0 {
		t.Errorf("%d answers came from the old leader after one from the new", n)
	}
}

// In a pod the credentials are in a file that the kubelet replaces.
func TestTokenOfAFile(t *testing.T) {
	c := newCluster(t)
	c.user("weir", "list pods.metrics.k8s.io")
	a := newReplica(t, c, "a")
	file := t.TempDir() + "/token"
	write(t, file, "token-of-weir")
	transports := peer.NewTransports(&rest.Config{BearerTokenFile: file})
	defer transports.Close()
	transport, err := transports.For("a", a.Address(), a.known.PEM())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Address()+"/api/v1/model/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if b, _ := io.ReadAll(response.Body); string(b) != "a shows /api/v1/model/" {
		t.Errorf("with the token of a file: %d %s", response.StatusCode, b)
	}
}
