package captures

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/capture"
)

// node is the name of the captured node.
const node metric.NodeName = "node1"

// interval is the approximate time between the captured rounds.
const interval = 10 * time.Second

// round is one captured round.
type round struct {
	dir  string
	meta struct {
		Endpoints map[string]struct {
			Start  int64 `json:"start_ns"`
			End    int64 `json:"end_ns"`
			Status int   `json:"status"`
		} `json:"endpoints"`
	}
	facts   *cluster.Facts
	cgroups []cgroup
}

// cgroup is one line of the kernel's counters.
type cgroup struct {
	Path   metric.CgroupPath `json:"id"`
	Time   int64             `json:"t_ns"`
	CPU    int64             `json:"cpuacct_usage_ns"`
	Memory int64             `json:"memory_usage_bytes"`
	Idle   int64             `json:"total_inactive_file"`
	Procs  int               `json:"procs"`
}

func scenarios(t *testing.T) (names []string) {
	t.Helper()
	dirs := capture.Glob(t, "*/00/meta.json")
	if len(dirs) < 10 {
		t.Fatalf("found %d scenarios", len(dirs))
	}
	for _, d := range dirs {
		names = append(names, filepath.Base(filepath.Dir(filepath.Dir(d))))
	}
	return names
}

// rounds returns the numbered rounds of a scenario, in order.
func rounds(t *testing.T, scenario string) (list []*round) {
	t.Helper()
	for _, dir := range capture.Glob(t, scenario+"/[0-9][0-9]") {
		r := &round{dir: dir}
		if err := json.Unmarshal(capture.Read(t, dir+"/meta.json"), &r.meta); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if pods, ok := r.read(t, "pods.json"); ok {
			// The facts have the time of the answer. The replay sets when a pod was first
			// seen, because it knows the earlier rounds.
			var err error
			r.facts, err = informer.FactsFromPods(pods, time.Unix(0, r.meta.Endpoints["pods.json"].End))
			if err != nil {
				t.Fatalf("%s: %v", dir, err)
			}
		}
		if body, ok := r.read(t, "cgroups.json"); ok {
			if err := json.Unmarshal(body, &r.cgroups); err != nil {
				t.Fatalf("%s: cgroups.json: %v", dir, err)
			}
		}
		list = append(list, r)
	}
	return list
}

// read returns the unpacked content of a file of the round, and whether it was
// captured.
func (r *round) read(t *testing.T, name string) ([]byte, bool) {
	t.Helper()
	if e, ok := r.meta.Endpoints[name]; ok && e.Status != 200 {
		return nil, false
	}
	return capture.Find(t, filepath.Join(r.dir, name))
}

// endpoint is an endpoint of the kubelet.
type endpoint struct {
	name, file string
	clock      time.Duration
	parser     func() parser
}

type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

var endpoints = []endpoint{
	{"resource", "resource.prom", resource.Clock, func() parser { return resource.New() }},
	{"summary", "summary.json", summary.Clock, func() parser { return summary.New() }},
	{"cadvisor", "cadvisor.prom", cadvisor.Clock, func() parser { return cadvisor.New() }},
}

// fill parses the round's answer of an endpoint into b, as a source would.
func (e *endpoint) fill(t *testing.T, r *round, p parser, b *metric.Batch) {
	t.Helper()
	b.Reset()
	b.Source, b.Node, b.Interval, b.Resolution = "kubelet:"+e.name, node, interval, e.clock
	times := r.meta.Endpoints[e.file]
	b.Began, b.Ended = time.Unix(0, times.Start), time.Unix(0, times.End)
	body, ok := r.read(t, e.file)
	if !ok {
		// Like the scraper: without an answer the node is unreachable, and status 500
		// means that its scrape failed.
		reason := metric.NodeUnreachable
		if times.Status == http.StatusInternalServerError {
			reason = metric.NodeScrapeError
		}
		b.Err = &metric.ReadError{Reason: reason, Err: fmt.Errorf("%s: status %d", e.file, times.Status)}
		return
	}
	b.Err = p.Parse(body, payload.Request{Node: node, Expect: node, Received: payload.Midpoint(b.Began, b.Ended)}, b)
}

// kernel has the kernel's counters of each container over the whole scenario.
type kernel map[containerKey][]cgroup

// containerKey is what a cgroup's path says about its container.
type containerKey struct {
	qos podcgroup.QoS
	uid metric.PodUID
	id  metric.ContainerID
}

func account(list []*round) kernel {
	k := kernel{}
	for _, r := range list {
		for _, c := range r.cgroups {
			if ref := podcgroup.Parse(c.Path); ref.Kind == podcgroup.Container {
				key := containerKey{ref.QoS, ref.UID, ref.ID}
				k[key] = append(k[key], c)
			}
		}
	}
	return k
}

// used returns the CPU rate in millicores that the kernel counted for a cgroup
// between two moments, interpolated between readings. It returns false if the
// readings do not cover that time.
func (k kernel) used(c containerKey, from, to int64) (float64, bool) {
	a, okA := k.at(c, from)
	b, okB := k.at(c, to)
	if !okA || !okB || to <= from {
		return 0, false
	}
	return (b - a) / float64(to-from) * 1000, true
}

func (k kernel) at(c containerKey, at int64) (float64, bool) {
	list := k[c]
	for i := range list {
		if list[i].Time < at {
			continue
		}
		if i == 0 {
			return 0, false
		}
		a, b := list[i-1], list[i]
		return float64(a.CPU) + float64(b.CPU-a.CPU)*float64(at-a.Time)/float64(b.Time-a.Time), true
	}
	return 0, false
}
