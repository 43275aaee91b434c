package leader_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/cluster/access"
)

// leaseServer is an API server with one Lease, over TLS and both versions of HTTP.
type leaseServer struct {
	mu       sync.Mutex
	lease    *coordination.Lease
	versions int
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(status int, o any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(o)
	}
	refuse := func(status int32, reason metav1.StatusReason) {
		answer(int(status), metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: status, Reason: reason})
	}
	if r.Method == http.MethodGet {
		if s.lease == nil {
			refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		answer(http.StatusOK, s.lease)
		return
	}
	var lease coordination.Lease
	if err := json.NewDecoder(r.Body).Decode(&lease); err != nil {
		refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest) // the request was cut
		return
	}
	if s.lease != nil && s.lease.ResourceVersion != lease.ResourceVersion {
		refuse(http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	s.versions++
	lease.ResourceVersion, lease.TypeMeta = strconv.Itoa(s.versions), metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
	s.lease = &lease
	answer(http.StatusOK, s.lease)
}

// fault is what a proxy does with connections.
type fault int

const (
	pass    fault = iota
	swallow       // connections stay, and nothing arrives on them any more
	cut           // connections break, and new ones are refused
	delay         // each chunk of bytes arrives 100 ms later
)

// proxy is a TCP proxy in front of an API server.
type proxy struct {
	net.Listener
	target string

	mu    sync.Mutex
	fault fault
	ended chan struct{} // closed when the test ends
	open  map[net.Conn]bool
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, target: target, ended: make(chan struct{}), open: map[net.Conn]bool{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		close(p.ended)
		p.closeAll()
		running.Wait()
	})
	return p
}

func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// serve copies both ways until one side ends.
func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.open[client], p.open[server] = true, true
	p.mu.Unlock()
	var copying sync.WaitGroup
	copying.Go(func() { p.copy(server, client) })
	copying.Go(func() { p.copy(client, server) })
	copying.Wait()
	p.mu.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mu.Unlock()
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		f := p.fault
		p.mu.Unlock()
		switch f {
		case swallow:
			<-p.ended
			return
		case cut:
			return
		case delay:
			<-time.After(100 * time.Millisecond)
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// The election survives an API server that does not answer: no replica waits for a request for longer
// than half of the time in which a leader renews, and after the outage one leads again at once.
func TestOutage(t *testing.T) {
	const (
		lease = 3 * time.Second
		renew = 2 * time.Second
		retry = 200 * time.Millisecond
	)
	for name, f := range map[string]fault{"the API server hangs": swallow, "connections are cut": cut, "answers are late": delay} {
		for _, both := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, for both: %t", name, both), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewUnstartedServer(&leaseServer{})
				server.EnableHTTP2 = true
				server.Config.ErrorLog = discard
				server.StartTLS()
				t.Cleanup(server.Close)
				var electors [2]*leader.Elector
				var proxies [2]*proxy
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				t.Cleanup(func() { cancel(); running.Wait() })
				for i := range electors {
					proxies[i] = newProxy(t, server.Listener.Addr().String())
					kube := access.DefaultLimits.Limit(&rest.Config{Host: "https://" + proxies[i].Addr().String(),
						ContentConfig: rest.ContentConfig{ContentType: "application/json"}, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
					})
					client, err := coordinationv1.NewForConfig(leader.ClientConfig(kube, renew))
					if err != nil {
						t.Fatal(err)
					}
					id := string(rune('a' + i))
					electors[i], err = leader.New(leader.Options{
						Client: client, Namespace: "weir-system", Name: "weir", Identity: id, Address: id + ":443", Certificate: []byte(id), Lease: lease, Renew: renew, Retry: retry,
					})
					if err != nil {
						t.Fatal(err)
					}
					running.Go(func() { _ = electors[i].Run(ctx) })
				}
				// leads returns which elector leads, or -1.
				leads := func() int {
					found := -1
					for i, e := range electors {
						if e.IsLeader() {
							if found >= 0 {
								t.Error("two replicas lead at once")
							}
							found = i
						}
					}
					return found
				}
				within(t, 20*time.Second, "a replica leads", func() bool { return leads() >= 0 })
				first := leads()
				proxies[first].set(f)
				if both {
					proxies[1-first].set(f)
				}
				switch {
				case f == delay:
					<-time.After(2 * lease)
					if got := leads(); got != first {
						t.Errorf("%d leads after late answers, want %d still", got, first)
					}
				case both:
					within(t, 2*lease, "no replica leads", func() bool { return leads() < 0 })
				default:
					within(t, 2*lease+renew, "the other replica leads", func() bool { return leads() == 1-first })
				}
				for _, p := range proxies {
					p.set(pass)
				}
				took := within(t, lease+renew, "after the outage a replica leads", func() bool { return leads() >= 0 })
				t.Logf("a replica led %.1fs after the outage", took.Seconds())
			})
		}
	}
}

// within waits until a condition is true, and fails the test if it is not after the limit.
func within(t *testing.T, limit time.Duration, what string, condition func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if condition() {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("%s: not after %v", what, limit)
		}
	}
	return 0
}

// discard takes the errors of connections that the test breaks.
var discard = log.New(io.Discard, "", 0)
