// Package recordingreplay makes the trace of a replay from a recorded run. It reads the results of
// weir's own pipeline for the recording, round by round.
//
// The demand is the mean usage of the measured ready pods, times the number of ready pods. The
// share of a new pod is therefore not missing in the half minute before its first measurement. The
// trace has a gap where fewer than half of the ready pods were measured. The mean of each container
// is over the pods that have it. A container that a rollout adds or removes uses nothing while no
// pod has it.
package recordingreplay

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/metric"
)

// leastStep is the shortest time between two points. If there is more time between rounds, there is
// one point for each round.
const leastStep = 15 * time.Second

// Options has the workload and the time to read.
type Options struct {
	Namespace metric.Namespace
	// Kind and Name are the kind and name of the target: "Deployment", "web".
	Kind, Name string
	// Selector selects the pods. If it is nil, the selector of the recorded target is used, and the
	// pods' names until that is known.
	Selector labels.Selector
	// From and To are the bounds of the trace; zero means the bounds of the recording.
	From, To time.Time
	// Named are the custom metrics of pods to read, by their names in weir's catalogue:
	// "network_receive_bytes_per_second".
	Named []string
}

// UsageReader returns the served samples of a pod and its containers. A snapshot of the memory sink
// implements it.
type UsageReader interface {
	Pod(metric.PodRef) (pod *metric.Sample, containers []*metric.Sample)
}

// RecordingCollector collects a trace. Only one goroutine may use it at a time.
type RecordingCollector struct {
	options    Options
	names      *regexp.Regexp
	selector   labels.Selector
	trace      replay.Trace
	next       time.Time
	containers map[string]*containerTrace
	zeros      replay.Series          // zero at each point, for containers that appear later
	target     *recording.ScaleTarget // the last recorded target; nil if none was recorded
	started    map[metric.PodUID]bool // pods that became ready
	delays     []time.Duration
}

// containerTrace is a container, with the number of points at which a pod had it.
type containerTrace struct {
	replay.TraceContainer
	points int
}

// New returns a collector. It fails if weir does not know one of the metrics.
func New(o Options) (*RecordingCollector, error) {
	for _, name := range o.Named {
		if _, ok := metric.ByName(name); !ok {
			return nil, fmt.Errorf("a recording has only weir's own metrics, and %s is not one of them", name)
		}
	}
	names, err := regexp.Compile("^(?:" + replay.PodsOf(o.Kind, o.Name) + ")$")
	if err != nil {
		return nil, fmt.Errorf("match pods: %w", err)
	}
	return &RecordingCollector{
		options: o, names: names, selector: o.Selector, containers: map[string]*containerTrace{}, started: map[metric.PodUID]bool{},
		trace: replay.Trace{Namespace: string(o.Namespace), Target: o.Kind + "/" + o.Name, Step: leastStep, Named: map[string]replay.Series{}},
	}, nil
}

// AddTarget adds a recorded target. Targets of other workloads are ignored.
func (c *RecordingCollector) AddTarget(t *recording.ScaleTarget, now time.Time) {
	if t.Namespace != c.options.Namespace || t.Name != c.options.Name || t.Resource != strings.ToLower(c.options.Kind)+"s" {
		return
	}
	if !c.options.To.IsZero() && !now.Before(c.options.To) {
		return
	}
	if c.target = t; t.Gone {
		c.target = nil
		return
	}
	if c.options.Selector == nil {
		if sel, err := labels.Parse(t.Selector); err == nil && !sel.Empty() {
			c.selector = sel
		}
	}
}

func (c *RecordingCollector) within(now time.Time) bool {
	return !now.Before(c.options.From) && (c.options.To.IsZero() || now.Before(c.options.To))
}

// AddRound adds the state after a round. Only the first round in each step is used.
func (c *RecordingCollector) AddRound(now time.Time, facts *cluster.Facts, usage UsageReader) {
	if facts == nil || !facts.Synced || !c.within(now) || now.Before(c.next) {
		return
	}
	c.next = now.Truncate(leastStep).Add(leastStep)
	if c.trace.From.IsZero() {
		c.trace.From = now
	}
	c.trace.To = now.Add(leastStep)
	var ready []*cluster.Pod
	replicas := 0
	for _, p := range facts.PodsIn(c.options.Namespace) {
		if !c.selects(p) {
			continue
		}
		replicas++
		c.learnStartup(p)
		c.keepSpecs(p)
		if p.Phase == cluster.Running && p.Ready == cluster.ReadyTrue {
			ready = append(ready, p)
		}
	}
	if c.target != nil {
		replicas = int(c.target.Replicas)
	}
	c.trace.Replicas = append(c.trace.Replicas, trace.Reading{At: now, Value: float64(replicas)})
	c.measure(now, ready, usage)
}

// selects reports whether p is one of the target's pods and counts as a replica.
func (c *RecordingCollector) selects(p *cluster.Pod) bool {
	if !p.Deleted.IsZero() || p.Phase == cluster.Failed || p.Phase == cluster.Succeeded {
		return false
	}
	if c.selector != nil {
		return c.selector.Matches(labels.Set(p.Labels))
	}
	return c.names.MatchString(string(p.Name))
}

// learnStartup records how long p took to become ready, if p started within the trace.
func (c *RecordingCollector) learnStartup(p *cluster.Pod) {
	// Each pod is counted once, because later changes of its readiness are not startups.
	if p.Started.IsZero() || p.Started.Before(c.trace.From) || p.Ready != cluster.ReadyTrue || c.started[p.UID] {
		return
	}
	c.started[p.UID] = true
	c.delays = append(c.delays, p.ReadySince.Sub(p.Started))
}

// keepSpecs stores the containers and requests of p. Later pods replace earlier ones.
func (c *RecordingCollector) keepSpecs(p *cluster.Pod) {
	for i := range p.Containers {
		f := &p.Containers[i]
		if f.Role == cluster.Ephemeral {
			continue
		}
		container := c.containers[f.Name]
		if container == nil {
			container = &containerTrace{TraceContainer: replay.TraceContainer{Name: f.Name, Role: f.Role, CPU: slices.Clone(c.zeros), Memory: slices.Clone(c.zeros)}}
			c.containers[f.Name] = container
		}
		container.Requests, container.Limits = autoscaler.RequestsOf(f.Spec), autoscaler.LimitsOf(f.Spec)
	}
	c.trace.Overhead = autoscaler.RequestsOf(p.Overhead)
	c.trace.PodLevel = nil
	if p.PodLevel {
		c.trace.PodLevel = new(autoscaler.RequestsOf(p.Spec))
	}
}

// podSum adds up one metric of the pods that have it.
type podSum struct {
	value float64
	pods  int
}

func (s *podSum) add(v *metric.Values, id metric.ID) {
	if value, ok := v.Get(id); ok {
		s.value += value * id.Describe().Unit.Prometheus()
		s.pods++
	}
}

// append adds a point for the given number of pods to a series, if at least half of them were
// measured.
func (s *podSum) append(to *replay.Series, now time.Time, pods int) {
	switch {
	case pods == 0:
		*to = append(*to, trace.Reading{At: now})
	case s.pods*2 >= pods:
		*to = append(*to, trace.Reading{At: now, Value: s.value / float64(s.pods) * float64(pods)})
	}
}

// measure adds a point to each series.
func (c *RecordingCollector) measure(now time.Time, ready []*cluster.Pod, usage UsageReader) {
	if len(ready) == 0 {
		return // the demand is not known
	}
	cpu, memory, named, having := map[string]*podSum{}, map[string]*podSum{}, map[string]*podSum{}, map[string]int{}
	for name := range c.containers {
		cpu[name], memory[name] = &podSum{}, &podSum{}
	}
	for _, name := range c.options.Named {
		named[name] = &podSum{}
	}
	for _, p := range ready {
		for i := range p.Containers {
			having[p.Containers[i].Name]++
		}
		pod, containers := usage.Pod(p.PodRef)
		for _, s := range containers {
			name := s.Entity.Name
			if c.containers[name] != nil {
				cpu[name].add(&s.Values, metric.CPUUsageRate)
				memory[name].add(&s.Values, metric.MemoryWorkingSet)
			}
		}
		for name, sum := range named {
			if id, _ := metric.ByName(name); pod != nil {
				sum.add(&pod.Values, id)
			}
		}
	}
	c.zeros = append(c.zeros, trace.Reading{At: now})
	for name, sum := range c.containers {
		if having[name] > 0 {
			sum.points++
		}
		cpu[name].append(&sum.CPU, now, having[name])
		memory[name].append(&sum.Memory, now, having[name])
	}
	for name, sum := range named {
		series := c.trace.Named[name]
		sum.append(&series, now, len(ready))
		c.trace.Named[name] = series
	}
}

// Trace returns the trace. If the trace is empty, the error says what to check.
func (c *RecordingCollector) Trace() (*replay.Trace, error) {
	t := c.trace
	if t.From.IsZero() {
		return nil, errors.New("the recording has no round in that time for which the API server's facts are known")
	}
	t.Step = max(t.Step, t.Replicas.Step().Round(time.Second))
	most := 0
	for _, container := range c.containers {
		most = max(most, container.points)
	}
	for _, name := range slices.Sorted(maps.Keys(c.containers)) {
		container := c.containers[name]
		if container.Role != cluster.Init && container.points*2 < most {
			t.Notes = append(t.Notes, fmt.Sprintf("container %s was in pods for %d%% of the time: it counts as temporary and is left out", name, container.points*100/most))
			continue
		}
		t.Containers = append(t.Containers, container.TraceContainer)
	}
	if len(t.Containers) == 0 {
		return nil, fmt.Errorf("the recording has no pods of %s in namespace %s", t.Target, t.Namespace)
	}
	t.Startup = replay.StartupOf(slices.Clone(c.delays))
	return &t, nil
}
