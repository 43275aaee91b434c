package model

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/metric"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

// TestAnswers sends the requests of testdata's transcripts and compares the answers byte by byte.
func TestAnswers(t *testing.T) {
	v, facts := village(t)
	for _, c := range []struct {
		file    string
		handler http.Handler
	}{
		{"testdata/model.txt", handlerOf(v, facts)},
		{"testdata/usage.txt", handlerOf(v, facts)},
		{"testdata/errors.txt", handlerOf(v, facts)},
		{"testdata/export.txt", handlerOf(v, facts)},
		{"testdata/without-cluster.txt", handlerOf(v, nil)},
		{"testdata/before-the-first-round.txt", handlerOf(nil, nil)},
	} {
		t.Run(c.file, func(t *testing.T) {
			want, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, c.handler, string(want))
			if *rewrite {
				if err := os.WriteFile(c.file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("answers differ (-want +got); -rewrite writes them again:\n%s", diff)
			}
		})
	}
}

// replay returns a transcript with the current answers. A request is a line that begins with a
// method. Its answer is all lines from ---- to an empty line. All other lines are prose.
func replay(t *testing.T, h http.Handler, transcript string) string {
	var out strings.Builder
	answer := false
	for line := range strings.Lines(transcript) {
		if answer {
			answer = line != "\n"
			if answer {
				continue
			}
		}
		if line == "----\n" {
			answer = true
			continue
		}
		out.WriteString(line)
		method, target, ok := strings.Cut(strings.TrimSpace(line), " /")
		if !ok || strings.HasPrefix(method, "#") {
			continue
		}
		r := get(t, h, method, "/"+target)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "----\n%d %s\n", r.StatusCode, r.Header.Get("Content-Type"))
		for _, name := range []string{"Allow", "Warning"} {
			for _, v := range r.Header.Values(name) {
				fmt.Fprintf(&out, "%s: %s\n", name, v)
			}
		}
		// Each point has its own line, so that differences are readable.
		body = bytes.ReplaceAll(bytes.TrimSuffix(body, []byte("\n")), []byte(`{"timestamp"`), []byte("\n  {\"timestamp\""))
		if len(body) > 0 {
			fmt.Fprintf(&out, "%s\n", body)
		}
	}
	return out.String()
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	v, facts := village(t)
	server := handlerOf(v, facts)
	for _, path := range []string{"/api/v1/model/nodes/", "/api/v1/model/namespaces/shop/pod-list/web-1/metrics/cpu/usage_rate", "/api/v1/metric-export", "/api/v1/model/nope"} {
		g, h := get(t, server, http.MethodGet, path), get(t, server, http.MethodHead, path)
		if g.StatusCode != h.StatusCode || g.Header.Get("Content-Type") != h.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: got %d %s, want GET's %d %s", path, h.StatusCode, h.Header.Get("Content-Type"), g.StatusCode, g.Header.Get("Content-Type"))
		}
	}
}

func TestRights(t *testing.T) {
	all, nodes, shop := rights.Everything(), []rights.Right{rights.ListNodes()}, []rights.Right{rights.ListPods("shop")}
	var nothing []rights.Right
	for path, want := range map[string][]rights.Right{
		"/api/v1/model/":                                                   nothing,
		"/api/v1/metric-export-schema":                                     nothing,
		"/api/v1/metric-export":                                            all,
		"/api/v1/model/debug/allkeys":                                      all,
		"/api/v1/model/metrics/":                                           all,
		"/api/v1/model/metrics/cpu/usage_rate":                             all,
		"/api/v1/model/namespaces/":                                        all,
		"/api/v1/model/nodes/":                                             nodes,
		"/api/v1/model/nodes/n1/metrics/":                                  nodes,
		"/api/v1/model/nodes/n1/metrics/cpu/usage_rate":                    nodes,
		"/api/v1/model/nodes/n1/freecontainers/":                           nodes,
		"/api/v1/model/nodes/n1/freecontainers/x/metrics/cpu/usage":        nodes,
		"/api/v1/model/nodes/n1/pods/":                                     all, // in all namespaces
		"/api/v1/model/namespaces/shop/metrics/cpu/usage_rate":             shop,
		"/api/v1/model/namespaces/shop/pods/":                              shop,
		"/api/v1/model/namespaces/shop/pods/p/metrics/":                    shop,
		"/api/v1/model/namespaces/shop/pods/p/metrics/cpu/usage":           shop,
		"/api/v1/model/namespaces/shop/pods/p/containers/":                 shop,
		"/api/v1/model/namespaces/shop/pods/p/containers/c/metrics/uptime": shop,
		"/api/v1/model/namespaces/shop/pod-list/a,b/metrics/cpu/usage":     shop,
		"/api/v1/model/namespaces/sh%6fp/pods/":                            shop,
		"/apis/metrics/v1alpha1/nodes":                                     nodes,
		"/apis/metrics/v1alpha1/nodes/n1/":                                 nodes,
		"/apis/metrics/v1alpha1/pods":                                      all,
		"/apis/metrics/v1alpha1/namespaces/shop/pods/":                     shop,
		"/apis/metrics/v1alpha1/namespaces/shop/pods/p":                    shop,
		// A path that is not understood is refused to callers who may not see everything.
		"/api/v1/model/namespaces/shop/pods/../../bank/pods": all,
		"/api/v1/model/namespaces//pods":                     all,
		"/api/v1/historical/metrics/":                        all,
		"/elsewhere":                                         all,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://weir"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := Rights(r); !slices.Equal(got, want) {
			t.Errorf("Rights(%s): got %v, want %v", path, got, want)
		}
	}
}

func TestPathsCoverEveryAnswer(t *testing.T) {
	v, facts := village(t)
	mux := http.NewServeMux()
	for _, path := range Paths() {
		mux.Handle(path, handlerOf(v, facts))
	}
	for _, path := range []string{
		"/api/v1/model", "/api/v1/model/", "/api/v1/model/nodes/n1/freecontainers/%2Fsystem.slice%2Fsshd.service/metrics",
		"/api/v1/metric-export", "/api/v1/metric-export-schema", "/apis/metrics/v1alpha1/pods",
	} {
		if r := get(t, mux, http.MethodGet, path); r.StatusCode != http.StatusOK {
			t.Errorf("GET %s: got %s, want 200", path, r.Status)
		}
	}
}

func TestAPodListIsBounded(t *testing.T) {
	v, facts := village(t)
	path := func(n int) string {
		return "/api/v1/model/namespaces/shop/pod-list/" + strings.Repeat("p,", n-1) + "p/metrics/cpu/usage_rate"
	}
	for n, want := range map[int]int{maxPods: http.StatusOK, maxPods + 1: http.StatusBadRequest} {
		r := get(t, handlerOf(v, facts), http.MethodGet, path(n))
		if r.StatusCode != want {
			t.Errorf("%d pods: got %s, want %d", n, r.Status, want)
		}
		if n := len(r.Header.Get("Warning")); n > maxWarning+64 {
			t.Errorf("%d pods: the warning has %d bytes, want at most %d", n, n, maxWarning+64)
		}
	}
}

func TestUnits(t *testing.T) {
	for id, want := range map[metric.ID]struct {
		value   float64 // the expected value of 1 in the catalogue's unit
		integer bool
	}{
		metric.CPUUsage:              {1, true},     // nanoseconds
		metric.CPUUsageRate:          {1e-6, true},  // millicores
		metric.CPURequest:            {1e-6, true},  // millicores
		metric.CPUNodeCapacity:       {1e-6, false}, // millicores
		metric.CPUNodeUtilization:    {1, false},    // a share
		metric.MemoryWorkingSet:      {1, true},     // bytes
		metric.MemoryPageFaultsRate:  {1, false},    // a second
		metric.MemoryNodeAllocatable: {1, false},    // bytes
		metric.NetworkRx:             {1, true},     // bytes
		metric.NetworkTxRate:         {1, false},    // bytes a second
		metric.FilesystemInodes:      {1, true},     // a count
		metric.AcceleratorDutyCycle:  {100, true},   // percent
		metric.Uptime:                {1e-6, true},  // milliseconds
	} {
		if got := heapsterFactor(id); got != want.value {
			t.Errorf("factor of %v: got %v, want %v", id, got, want.value)
		}
		if got := isInteger(id); got != want.integer {
			t.Errorf("%v is an integer: got %v, want %v", id, got, want.integer)
		}
	}
	for value, want := range map[float64]uint64{-1: 0, 0.4: 0, 0.5: 1, 1234.5: 1235, 1e300: 1<<63 - 1} {
		if got := toUnsigned(value); got != want {
			t.Errorf("whole(%v): got %d, want %d", value, got, want)
		}
	}
}
