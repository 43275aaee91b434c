package explain_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/transcript"
)

// fixture is the real pipeline and memory sink, and their inputs.
type fixture struct {
	sink      *memory.Sink
	read      bool // something was read
	started   time.Time
	facts     *cluster.Facts
	pipelines map[string]*processors.Pipeline
	sources   map[string]*explain.SourceState
	scaled    map[string]string // autoscaler → prefix of the pods' namespace/name
}

func newFixture() *fixture {
	return &fixture{sink: memory.New(memory.Options{}), pipelines: map[string]*processors.Pipeline{}, sources: map[string]*explain.SourceState{}, scaled: map[string]string{}}
}

// at returns the explainer of the fixture at a moment.
func (fx *fixture) at(now time.Time) *explain.Explainer {
	e := &explain.Explainer{Now: now, Started: fx.started, Facts: fx.facts}
	if fx.read {
		e.View = fx.sink.Snapshot()
	}
	for _, name := range slices.Sorted(maps.Keys(fx.sources)) {
		e.Sources = append(e.Sources, *fx.sources[name])
	}
	if len(fx.scaled) > 0 {
		e.Autoscalers = func(p *cluster.Pod) (all []string) {
			for _, a := range slices.Sorted(maps.Keys(fx.scaled)) {
				if strings.HasPrefix(p.String(), fx.scaled[a]) {
					all = append(all, a)
				}
			}
			return all
		}
	}
	return e
}

// entity parses ns/pod and ns/pod/container. It returns the zero Entity for other names.
func entity(name string) metric.Entity {
	if !strings.Contains(name, "/") {
		return metric.Entity{}
	}
	return transcript.Entity("", name)
}

// attributes splits "name key=value flag".
func attributes(line string) (name string, attrs map[string]string) {
	attrs = map[string]string{}
	for i, word := range strings.Fields(line) {
		if i == 0 {
			name = word
			continue
		}
		k, v, _ := strings.Cut(word, "=")
		attrs[k] = v
	}
	return name, attrs
}

// learn replaces everything that the API server says with lines.
func (fx *fixture) learn(lines []string, at time.Time, synced bool) error {
	c := cluster.FactsChange{Synced: synced, At: at}
	fx.facts.EachNode(func(n *cluster.Node) bool { c.GoneNodes = append(c.GoneNodes, n.Name); return true })
	fx.facts.EachPod(func(p *cluster.Pod) bool { c.GonePods = append(c.GonePods, p.PodRef); return true })
	pods := map[metric.PodRef]*cluster.Pod{}
	for _, line := range lines {
		what, rest, _ := strings.Cut(line, " ")
		name, attrs := attributes(rest)
		r := reader{attrs: attrs}
		e := entity(name)
		switch what {
		case "node":
			n := &cluster.Node{Name: metric.NodeName(name), Ready: !r.flag("notready")}
			if v := r.text("lifecycle"); v != "" {
				n.Lifecycle = []cluster.NodeLifecycle{cluster.NodeLifecycle(v)}
			}
			if v := r.text("cpu"); v != "" {
				cores, err := strconv.ParseFloat(v, 64)
				r.note(err)
				n.Spec.Set(metric.CPUNodeCapacity, cores*1e9)
			}
			c.Nodes = append(c.Nodes, n)
		case "pod":
			p := &cluster.Pod{
				PodRef: e.PodRef(), UID: metric.PodUID(r.text("uid")), Node: metric.NodeName(r.text("node")), Phase: cluster.Running,
				Started: r.moment("started"), Deleted: r.moment("deleted"), KnownAt: r.moment("known"), QoS: r.text("qos"), HostNetwork: r.flag("hostnet"),
			}
			if phase := r.text("phase"); phase != "" {
				p.Phase = cluster.Phase(phase)
			}
			pods[p.PodRef] = p
			c.Pods = append(c.Pods, p)
		case "container":
			p := pods[e.PodRef()]
			if p == nil {
				return fmt.Errorf("%q: name its pod first", line)
			}
			f := cluster.Container{
				Name: e.Name, State: cluster.StateRunning, ID: metric.ContainerID(r.text("id")), Previous: cluster.PreviousRun{LastID: metric.ContainerID(r.text("last")), EndedAt: r.moment("ended"), StateReason: r.text("why"), EndReason: r.text("end"), ExitCode: int32(r.number("exit"))}.OrNil(),
				StartedAt: r.moment("started"), Restarts: int32(r.number("restarts")),
			}
			for flag, state := range map[string]cluster.ContainerState{"waiting": cluster.StateWaiting, "terminated": cluster.StateTerminated, "unknown": cluster.StateUnknown} {
				if r.flag(flag) {
					f.State = state
				}
			}
			for flag, role := range map[string]cluster.Role{"init": cluster.Init, "sidecar": cluster.Sidecar, "ephemeral": cluster.Ephemeral} {
				if r.flag(flag) {
					f.Role = role
				}
			}
			p.Containers = append(p.Containers, f)
		default:
			return fmt.Errorf("%q: want node, pod or container", line)
		}
		if err := r.done(); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	fx.facts = fx.facts.With(c)
	return nil
}

// source returns the state of one source of one node, for changes.
func (fx *fixture) source(name string, node metric.NodeName) *explain.SourceState {
	key := string(node) + " " + name
	if fx.sources[key] == nil {
		fx.sources[key] = &explain.SourceState{Name: name, Node: node, Interval: 15 * time.Second}
	}
	return fx.sources[key]
}

// observe writes a read of a node. lines are what the node reports, or verdicts that no processor
// makes.
func (fx *fixture) observe(b *metric.Batch, lines []string) error {
	now := b.Ended
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "verdict "); ok {
			name, attrs := attributes(rest)
			r := reader{attrs: attrs}
			reason, _ := metric.ParseReason(r.text("reason"))
			limit := r.number("limit")
			for _, g := range [...]metric.Group{metric.CPU, metric.Memory} {
				b.Verdicts = append(b.Verdicts, metric.Verdict{
					Entity: transcript.Entity(b.Node, name), Group: g, Reason: reason,
					Evidence: metric.Evidence{Limit: limit},
				})
			}
			if err := r.done(); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			continue
		}
		name, attrs := attributes(line)
		if err := fill(b.Add(transcript.Entity(b.Node, name)), attrs, now); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	key := string(b.Node) + " " + b.Source
	if fx.pipelines[key] == nil {
		fx.pipelines[key] = processors.New(processors.Options{})
	}
	fx.pipelines[key].Process(fx.facts, b, now)
	s := fx.source(b.Source, b.Node)
	switch {
	case b.Err == nil:
		s.FailingSince = time.Time{}
	case s.Err == nil:
		s.FailingSince = b.Began
	}
	s.Interval, s.LastRead, s.Due, s.Err = b.Interval, now, now.Add(b.Interval), b.Err
	if b.NodeTime != 0 {
		s.ClockAhead = time.Unix(0, b.NodeTime).Sub(now)
	}
	if b.Err == nil {
		s.LastSuccess = now
	}
	fx.read = true
	return fx.sink.Write(context.Background(), b)
}

// fill sets s to the sample that a node reports.
func fill(s *metric.Sample, attrs map[string]string, now time.Time) error {
	r := reader{attrs: attrs}
	at := now
	if _, ok := attrs["time"]; ok {
		at = r.moment("time")
	}
	s.Instance.UID, s.Instance.ID = metric.PodUID(r.text("uid")), metric.ContainerID(r.text("id"))
	s.Instance.Path, s.Instance.Origin = metric.CgroupPath(r.text("path")), metric.StartReported
	if start := r.moment("start"); !start.IsZero() {
		s.Instance.Start = start.UnixNano()
	}
	if _, ok := attrs["procs"]; ok {
		s.Instance.Processes = int32(r.number("procs"))
	}
	for key, id := range map[string]metric.ID{"cpu": metric.CPUUsage, "mem": metric.MemoryWorkingSet, "rx": metric.NetworkRx, "fs": metric.EphemeralStorageUsage} {
		v, ok := attrs[key]
		if !ok {
			continue
		}
		delete(r.attrs, key)
		amount, err := transcript.Bytes(v)
		if key == "cpu" {
			var used time.Duration
			used, err = time.ParseDuration(v)
			amount = float64(used)
		}
		r.note(err)
		s.Values.Set(id, amount)
		s.Times[id.Describe().Group] = at.UnixNano()
	}
	return r.done()
}

// reader reads attributes, and reports those that were not read.
type reader struct {
	attrs map[string]string
	err   error
}

func (r *reader) note(err error) { r.err = errors.Join(r.err, err) }

func (r *reader) text(key string) string {
	v := r.attrs[key]
	delete(r.attrs, key)
	return v
}

func (r *reader) flag(key string) bool {
	_, ok := r.attrs[key]
	delete(r.attrs, key)
	return ok
}

func (r *reader) number(key string) float64 {
	v := r.text(key)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseFloat(v, 64)
	r.note(err)
	return n
}

// moment reads an offset from the epoch. It returns zero if there is none.
func (r *reader) moment(key string) time.Time {
	v := r.text(key)
	if v == "" {
		return time.Time{}
	}
	at, err := transcript.Moment(v)
	r.note(err)
	return at
}

func (r *reader) done() error {
	for key := range r.attrs {
		r.note(fmt.Errorf("unknown attribute %q", key))
	}
	return r.err
}
