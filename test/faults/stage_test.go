//go:build e2e

package faults

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/apiserver"
)

var write = flag.Bool("write", false, "write the figures of this run to "+ResultsFile)

var long = flag.Bool("long", false, "run the rows that take longer than a minute, as make nightly does")

// nightly skips a test that takes longer than a minute.
func nightly(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("it takes longer than a minute: give -args -long, as make nightly does")
	}
}

const interval = Resolution * time.Second

// resultsFile guards ResultsFile.
var resultsFile sync.Mutex

// record writes the figures of a row, if -write is given. A test that has failed has none.
func record(t *testing.T, test string, r Result) {
	t.Helper()
	t.Logf("served: %s; lost: %s; ended: %s; metrics-server: %s", r.Served, r.Lost, r.Ended, r.Peer)
	if t.Failed() || !*write {
		return
	}
	resultsFile.Lock()
	defer resultsFile.Unlock()
	all := map[string]Result{}
	text, err := os.ReadFile(ResultsFile)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("read the old results: %v", err)
	}
	all[test] = r
	if text, err = json.MarshalIndent(all, "", "\t"); err == nil {
		err = os.WriteFile(ResultsFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatalf("write the results: %v", err)
	}
}

// stage is a simulated cluster in this process.
type stage struct {
	t         *testing.T
	fleet     *simulator.Fleet
	start     time.Time // when the times of faults begin
	authority *simulator.Authority
	ca        string       // file of the authority's certificate
	latency   atomic.Int64 // of the API server, in nanoseconds
	kubelets  *endpoint
	api       *apiserver.Server
}

// seedOfStages chooses the names and the usage of all pods.
const seedOfStages = 19

// options describe a stage. The zero value has thirty nodes of ten pods of two containers.
type options struct {
	nodes, pods, containers int
	churn                   float64 // part of the pods that is replaced in a minute
	faults                  []string
}

// raise starts a simulated cluster until the end of the test.
func raise(t *testing.T, o options) *stage {
	t.Helper()
	s := &stage{t: t, start: time.Now()}
	fleet := simulator.Options{Nodes: 30, Pods: 10, Containers: 2, Seed: seedOfStages, Start: s.start, Fresh: true}
	if o.nodes > 0 {
		fleet.Nodes, fleet.Pods, fleet.Containers = o.nodes, o.pods, o.containers
	}
	fleet.Churn = o.churn
	for _, text := range o.faults {
		f, err := simulator.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		fleet.Faults = append(fleet.Faults, f)
	}
	var err error
	if s.fleet, err = simulator.New(fleet); err != nil {
		t.Fatal(err)
	}
	s.ca = filepath.Join(t.TempDir(), "ca.pem")
	s.authority = s.newAuthority()
	s.trust(s.authority)
	s.kubelets = s.serveKubelets("0.0.0.0:0")
	s.api = apiserver.New(apiserver.Options{Fleet: s.fleet, Port: s.kubelets.port()})
	background.Run(s.t, s.api.Run)
	return s
}

func (s *stage) newAuthority() *simulator.Authority {
	s.t.Helper()
	a, err := simulator.NewAuthority(s.start)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// trust writes the certificate that weir verifies kubelets with.
func (s *stage) trust(a *simulator.Authority) {
	s.t.Helper()
	if err := os.WriteFile(s.ca, a.PEM(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// endpoint is something that listens.
type endpoint struct {
	address string
	stop    func()
}

func (e *endpoint) port() int {
	_, port, _ := net.SplitHostPort(e.address)
	n, _ := net.LookupPort("tcp", port)
	return n
}

func (s *stage) listen(address string) net.Listener {
	s.t.Helper()
	var l net.Listener
	commands.Eventually(s.t, 10*time.Second, func() (err error) { l, err = net.Listen("tcp4", address); return err })
	return l
}

// serveKubelets answers for all nodes, with certificates of the stage's authority.
func (s *stage) serveKubelets(address string) *endpoint {
	s.t.Helper()
	l := s.listen(address)
	server := simulator.NewServer(simulator.ServerOptions{Fleet: s.fleet, Authority: s.authority, Grace: time.Millisecond})
	return &endpoint{l.Addr().String(), background.Run(s.t, func(ctx context.Context) error { return server.Serve(ctx, l) })}
}

// serveAPI answers as the API server, each request after the latency of the stage. Its stop closes all
// connections at once.
func (s *stage) serveAPI(address string) *endpoint {
	s.t.Helper()
	l := s.listen(address)
	certificate, err := s.authority.ServerCertificate("127.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, r *http.Request) {
		if latency := time.Duration(s.latency.Load()); latency > 0 {
			select {
			case <-time.After(latency):
			case <-r.Context().Done():
			}
		}
		s.api.ServeHTTP(w, r)
	}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{*certificate}}}
	return &endpoint{l.Addr().String(), background.Run(s.t, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})}
}

// kubeconfig returns the path of a kubeconfig for this endpoint of the API server.
func (s *stage) kubeconfig(api *endpoint) string {
	s.t.Helper()
	file, err := apiserver.Kubeconfig("https://"+api.address, s.authority.PEM())
	if err != nil {
		s.t.Fatal(err)
	}
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// server returns the arguments with which weir reads the cluster through this endpoint of the API server.
func (s *stage) server(api *endpoint, more ...string) []string {
	s.t.Helper()
	return s.serverOf(s.kubeconfig(api), more...)
}

// serverOf is like server, with a kubeconfig.
func (s *stage) serverOf(kubeconfig string, more ...string) []string {
	return append([]string{"server", "--listen=127.0.0.1:0", "--metric-resolution=" + interval.String(), "--kubeconfig=" + kubeconfig,
		"--source=kubelet:?ca=" + s.ca, "--log-level=info"}, more...)
}

// nobody says that a fault concerns no node.
func nobody(*usage.Item) bool { return false }

// The containers and pods of a stage without options.
const allContainers, allPods = 30 * 10 * 2, 30 * 10

// until waits until a time after the start of the stage.
func (s *stage) until(at time.Duration) {
	s.t.Helper()
	left := time.Until(s.start.Add(at))
	if left < 0 {
		s.t.Fatalf("it is %v after %v: this machine is too slow", -left, at)
	}
	time.Sleep(left)
}
