package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/server"
)

// At shutdown /readyz fails first, while everything is still served. Requests under way end before
// Run does.
func TestShutdownIsGraceful(t *testing.T) {
	c := newCluster(t)
	as := admin(c, "/weir/v1/slow", "/weir/v1/about")
	entered, release := make(chan struct{}), make(chan struct{})
	r := start(t, c, func(o *server.Options, _ *server.Config) { o.ShutdownDelay = 5 * time.Second }, func(s *server.Server) {
		s.Handle("/weir/v1/slow", nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-release
			io.WriteString(w, "done")
		}))
		s.Handle("/weir/v1/about", nil, echo)
	})
	if got := r.get(t, "/readyz", nil); got.code != 200 {
		t.Fatalf("GET /readyz = %d %s", got.code, got.body)
	}
	slow := make(chan answer, 1)
	go func() { slow <- r.get(t, "/weir/v1/slow", as) }()
	<-entered
	r.stop()
	until(t, "/readyz fails", func() bool { return r.get(t, "/readyz", nil).code == 500 })
	if got := r.get(t, "/readyz", nil); !strings.Contains(got.body, "[-]shutdown failed") {
		t.Errorf("GET /readyz says\n%s\nwant a word on the shutdown", got.body)
	}
	if got := r.get(t, "/weir/v1/about", as); got.code != 200 {
		t.Errorf("during the delay a request got %d %s, want 200", got.code, got.body)
	}
	until(t, "no connection is taken", func() bool { return r.get(t, "/livez", nil).code == 0 })
	select {
	case <-r.ended:
		t.Error("Run ended before a request under way")
	default:
	}
	close(release)
	if got := <-slow; got.code != 200 || got.body != "done" {
		t.Errorf("the request under way got %d %s, want 200 done", got.code, got.body)
	}
}

// A request that does not end is cut off, and Run ends.
func TestShutdownCutsOff(t *testing.T) {
	c := newCluster(t)
	as := admin(c, "/weir/v1/stuck")
	entered := make(chan struct{})
	r := start(t, c, func(o *server.Options, _ *server.Config) { o.ShutdownGrace = 300 * time.Millisecond }, func(s *server.Server) {
		s.Handle("/weir/v1/stuck", nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		}))
	})
	go r.get(t, "/weir/v1/stuck", as)
	<-entered
	r.stop()
	select {
	case <-r.ended:
	case <-time.After(20 * time.Second):
		t.Error("Run waits for a request that does not end")
	}
}
