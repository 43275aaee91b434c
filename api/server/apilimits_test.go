package server_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cluster/access"
)

// clusterBehind returns c behind an API server that calls before with each request first.
func clusterBehind(t *testing.T, c *fakeCluster, before http.HandlerFunc) *fakeCluster {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before(w, r); r.Context().Err() == nil {
			c.serve(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	write(t, c.kubeconfig, regexp.MustCompile(`http://[0-9.:]+`).ReplaceAllString(string(text), srv.URL))
	return c
}

// setLimits sets the limits of the API server's answers until the test ends.
func setLimits(t *testing.T, l access.Limits) {
	before := access.DefaultLimits
	t.Cleanup(func() { access.DefaultLimits = before })
	access.DefaultLimits = l
}

// A server does not wait for ever for an API server. The test is a process of its own: the library does
// not end what it started before it failed.
func TestAPIServerHangsAtTheStart(t *testing.T) {
	const child = "WEIR_TEST_HANGING_API_SERVER"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPIServerHangsAtTheStart$")
		cmd.Env = append(os.Environ(), child+"=1")
		if got, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, got)
		}
		return
	}
	time.AfterFunc(20*time.Second, func() { fmt.Println("the server still waits after 20s"); os.Exit(1) })
	setLimits(t, access.Limits{Silence: 100 * time.Millisecond, Bytes: 1 << 20})
	c := clusterBehind(t, newCluster(t), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	o := server.NewOptions()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.SecureServing.Listener = ln
	if _, err := server.New(o, server.Config{Kubeconfig: c.kubeconfig}); err == nil || !strings.Contains(err.Error(), access.ErrSilent.Error()) {
		fmt.Printf("the error is %v, want %v\n", err, access.ErrSilent)
		os.Exit(1)
	}
	os.Exit(0)
}

// Answers to the questions who a caller is and what it may do have a limit, too.
func TestReviewsAreBounded(t *testing.T) {
	setLimits(t, access.Limits{Silence: time.Minute, Bytes: 100_000})
	for _, kind := range []string{"tokenreviews", "subjectaccessreviews"} {
		c := newCluster(t)
		var long atomic.Bool
		c = clusterBehind(t, c, func(w http.ResponseWriter, r *http.Request) {
			if long.Load() && strings.HasSuffix(r.URL.Path, kind) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(strings.Repeat(" ", 100_000)))
			}
		})
		token := c.user("jane", "get /weir/v1/about")
		r := start(t, c, nil, func(s *server.Server) {
			s.Handle("/weir/v1/about", nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		})
		for _, far := range []bool{false, true} {
			long.Store(far)
			if got := r.get(t, "/weir/v1/about", bearer(token)); (got.code == http.StatusOK) == far {
				t.Errorf("%s: with a long answer: %t: got %d %s", kind, far, got.code, got.body)
			}
		}
	}
}
