//go:build e2e

package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/commands"
)

var soak = flag.Duration("soak", 0, "how long TestSoak runs weir, at least 9m; make nightly gives 45m, so that the memory reaches back fifteen minutes as by default")

// TestSoak runs weir with its manager and its watches at fifteen times the usual pace: each node is read
// every second, and each pod is replaced once a minute. In each ninth of the time a node hangs, another
// one is down, a third one vanishes, a fourth one answers with noise, and the API server goes away and
// comes back. What weir holds must not grow once its memory is full, after a third of the time.
//
// With -artifacts the test keeps heap profiles, to be compared with go tool pprof -base.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("it takes most of an hour: give -args -soak=45m, as make nightly does")
	}
	const nodes, pods, containers = 10, 30, 2
	history, cycle := *soak/3, *soak/9
	if cycle < time.Minute {
		t.Fatal("give -soak=9m or more: each ninth is a round of faults")
	}
	var faults []string
	for at := cycle; at < *soak; at += cycle {
		for i, fault := range []string{"hang", "down", "unlisted", "garbage"} {
			faults = append(faults, fmt.Sprintf("%s node=node-%04d at=%v for=%v", fault, i+1, at, cycle*2/5))
		}
	}
	s := raise(t, options{nodes: nodes, pods: pods, containers: containers, churn: 1, faults: faults})
	url, arguments := secure(t)
	api := s.serveAPI("127.0.0.1:0")
	weir := commands.StartWith(t, []string{"GODEBUG=memprofilerate=8192"}, "weir", s.server(api, append(arguments,
		"--metric-resolution=1s", "--pprof", fmt.Sprintf("--sink=memory:?history=%v", history))...)...)
	w := s.watch(weir.Address(t), func(it *usage.Item) bool { return it.Node <= "node-0004" }, 0)
	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	var l lists
	var asks sync.WaitGroup
	for i := range 3 {
		asks.Go(func() { l.ask(ctx, url, fmt.Sprintf("caller-%d", i), i == 0, time.Second) })
	}
	asks.Go(func() { // the API server goes away between two rounds of node faults
		for at := cycle * 3 / 2; at < *soak; at += cycle {
			time.Sleep(time.Until(s.start.Add(at)))
			api.stop()
			time.Sleep(cycle / 15)
			api = s.serveAPI(api.address)
		}
	})
	var all []held
	for at := cycle; at <= *soak; at = max(at, time.Since(s.start)) + cycle/10 {
		time.Sleep(time.Until(s.start.Add(at)))
		h, err := heldBy(weir.Address(t), filepath.Join(t.ArtifactDir(), fmt.Sprintf("heap-%05.0fs", at.Seconds())))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%5.1f min: %5.2f MiB live, %.1f MiB resident, %.0f goroutines, %.0f open files", at.Minutes(), h.heap, h.resident, h.goroutines, h.files)
		if at >= history+cycle {
			all = append(all, h)
		}
	}
	if len(all) < 6 {
		t.Fatalf("%d samples: this machine is too slow", len(all))
	}
	cancel()
	asks.Wait()
	w.end()
	during := w.between(s.start.Add(cycle), time.Now())
	if wrong := slices.Concat(during.healthy.wrong, during.other.wrong); len(wrong) > 0 {
		t.Errorf("%d numbers were wrong: %q", len(wrong), wrong)
	}
	// No caller can be authenticated while the API server is away, and this machine may be slow.
	if during.failed > during.looks/2 || len(l.failed) > l.made/2 {
		t.Errorf("%d of %d requests and %d of %d LISTs failed: %q", during.failed, during.looks, len(l.failed), l.made, during.errors)
	}
	// Each pod may be there twice while it is replaced.
	if got, most := during.healthy.containers+during.other.containers, 2*nodes*pods*containers; got > most {
		t.Errorf("weir has %d containers at the end, want at most %d", got, most)
	}
	for _, of := range []struct {
		what  string
		slack float64 // by how much the last half may have more than the first
		value func(held) float64
	}{
		{"MiB of live heap", 2, func(h held) float64 { return h.heap }},
		{"MiB resident", 4, func(h held) float64 { return h.resident }},
		{"goroutines", 8, func(h held) float64 { return h.goroutines }},
		{"open files", 8, func(h held) float64 { return h.files }},
	} {
		first, last := least(all[:len(all)/2], of.value), least(all[len(all)/2:], of.value)
		t.Logf("the least in the two halves after the memory was full: %.1f and %.1f %s", first, last, of.what)
		if last > first+of.slack {
			t.Errorf("it grew from %.1f to %.1f %s", first, last, of.what)
		}
	}
	t.Logf("%.0f pods were replaced; %d of %d requests and %d of %d LISTs failed; numbers of the nodes without faults were at most %s old",
		nodes*pods*soak.Minutes(), during.failed, during.looks, len(l.failed), l.made, seconds(during.healthy.oldest))
}

// held is what a program holds.
type held struct{ heap, resident, goroutines, files float64 } // in MiB, the first two

// heldBy asks the weir at this URL what it holds, and writes its heap profile to a file.
func heldBy(url, file string) (held, error) {
	h := held{heap: math.Inf(1)}
	for range 3 { // what is served or read during a collection counts as live
		profile, err := get(url + "/debug/pprof/heap?gc=1")
		if err != nil {
			return h, err
		}
		if err := os.WriteFile(file, profile, 0o600); err != nil {
			return h, err
		}
		text, err := get(url + "/metrics")
		if err != nil {
			return h, err
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
		if err != nil {
			return h, err
		}
		value := func(name string) float64 {
			if f := families[name]; f != nil {
				return f.Metric[0].GetGauge().GetValue()
			}
			err = errors.Join(err, fmt.Errorf("weir has no %s", name))
			return 0
		}
		// The next collection begins when the heap has grown by GOGC percent. Other figures of the heap
		// have what was allocated since the last one.
		h.heap = min(h.heap, value("go_memstats_next_gc_bytes")/(1+value("go_gc_gogc_percent")/100)/(1<<20))
		h.resident, h.goroutines, h.files = value("process_resident_memory_bytes")/(1<<20), value("go_goroutines"), value("process_open_fds")
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

func get(url string) ([]byte, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

func least(all []held, value func(held) float64) float64 {
	smallest := math.Inf(1)
	for _, h := range all {
		smallest = min(smallest, value(h))
	}
	return smallest
}
