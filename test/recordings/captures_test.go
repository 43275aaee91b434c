package recordings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/capture"
)

type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

// endpoints are the endpoints of the captured kubelet.
var endpoints = []struct {
	file  string
	clock time.Duration
	parse func() parser
}{
	{"resource.prom", resource.Clock, func() parser { return resource.New() }},
	{"summary.json", summary.Clock, func() parser { return summary.New() }},
	{"cadvisor.prom", cadvisor.Clock, func() parser { return cadvisor.New() }},
}

// TestCapturesOfARealKubelet checks that the replay of a real kubelet's answers
// gives the same numbers.
func TestCapturesOfARealKubelet(t *testing.T) {
	scenarios := capture.Glob(t, "*/00")
	if len(scenarios) < 10 {
		t.Fatalf("found %d scenarios", len(scenarios))
	}
	secondReads := 0
	for _, s := range scenarios {
		dir := filepath.Dir(s)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var l *livePipeline
			parsers := make([]parser, len(endpoints))
			for _, round := range capture.Glob(t, dir+"/[0-9][0-9]") {
				c := readCapture(t, round)
				for i, e := range endpoints {
					if c.times[e.file].Start == 0 {
						continue
					}
					if parsers[i] == nil {
						parsers[i] = e.parse()
					}
					b := c.batch(t, e.file, e.clock, parsers[i])
					if l == nil {
						l = newLive(t, b.Began)
					}
					var readSecond func() *metric.Batch
					if i == 0 {
						readSecond = func() *metric.Batch { return c.batch(t, endpoints[1].file, endpoints[1].clock, summary.New()) }
					}
					l.round(b, c.facts, b.Ended, readSecond)
				}
			}
			secondReads += l.replay()
		})
	}
	if secondReads == 0 {
		t.Error("no second read was made in any scenario: the test shows less than it should")
	}
}

type capturedRound struct {
	dir   string
	times map[string]struct {
		Start  int64 `json:"start_ns"`
		End    int64 `json:"end_ns"`
		Status int   `json:"status"`
	}
	facts *cluster.Facts
}

func readCapture(t *testing.T, dir string) *capturedRound {
	t.Helper()
	c := &capturedRound{dir: dir}
	if err := json.Unmarshal(capture.Read(t, dir+"/meta.json"), &struct{ Endpoints any }{&c.times}); err != nil {
		t.Fatal(err)
	}
	if pods := c.read(t, "pods.json"); pods != nil {
		var err error
		if c.facts, err = informer.FactsFromPods(pods, time.Unix(0, c.times["pods.json"].End)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// read returns the unpacked content of a file, or nil if there is none.
func (c *capturedRound) read(t *testing.T, name string) []byte {
	t.Helper()
	body, _ := capture.Find(t, filepath.Join(c.dir, name))
	return body
}

func (c *capturedRound) batch(t *testing.T, file string, clock time.Duration, p parser) *metric.Batch {
	t.Helper()
	times := c.times[file]
	b := &metric.Batch{Source: "kubelet:" + file, Node: "node1", Interval: 10 * time.Second, Resolution: clock}
	b.Began, b.Ended = time.Unix(0, times.Start), time.Unix(0, times.End)
	body := c.read(t, file)
	if body == nil || times.Status != 200 {
		b.Err = &metric.ReadError{Reason: metric.NodeUnreachable, Err: fmt.Errorf("%s: status %d", file, times.Status)}
		return b
	}
	b.Bytes = len(body)
	b.Err = p.Parse(body, payload.Request{Node: "node1", Expect: "node1", Received: payload.Midpoint(b.Began, b.Ended)}, b)
	return b
}
