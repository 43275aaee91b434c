// Package promusage reads the usage of containers over several days from a Prometheus that scrapes
// weir (/metrics/cluster) or the kubelets (/metrics/cadvisor).
//
// A CPU reading is the mean over five minutes or over one step, whichever is longer. A memory
// reading is the highest scraped working set of a step. A percentile of CPU therefore shows short
// bursts less than one from weir's own memory does. A container is the same container after a
// restart.
package promusage

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resize"
)

// Request shows which usage to read.
type Request struct {
	// Namespace is the namespace of the pods, Pod the name of a pod. Empty means all.
	Namespace, Pod string
	From, To       time.Time
}

// ContainerUsage is the usage of containers. A zero or nil ContainerUsage is empty.
type ContainerUsage struct {
	series map[containerKey][]resize.UsagePoint
}

type containerKey struct {
	namespace, pod, container string
	resource                  resize.Resource
}

// Points returns a container's usage of a resource, in order of time, or that of all containers of the
// pod together if container is empty.
func (u *ContainerUsage) Points(namespace, pod, container string, r resize.Resource) []resize.UsagePoint {
	switch {
	case u == nil:
		return nil
	case container != "":
		return u.series[containerKey{namespace, pod, container, r}]
	}
	sums := map[time.Time]float64{} // all series have the times of the same steps
	for k, points := range u.series {
		if k.namespace == namespace && k.pod == pod && k.resource == r {
			for _, p := range points {
				sums[p.At.UTC()] += p.Value
			}
		}
	}
	var list []resize.UsagePoint
	for _, at := range slices.SortedFunc(maps.Keys(sums), time.Time.Compare) {
		list = append(list, resize.UsagePoint{At: at, Value: sums[at]})
	}
	return list
}

// Containers yields the containers that have readings, in no order; one may be yielded more than once.
func (u *ContainerUsage) Containers() iter.Seq[metric.Entity] {
	return func(yield func(metric.Entity) bool) {
		for k := range u.series {
			if !yield(metric.Entity{Kind: metric.Container, Namespace: metric.Namespace(k.namespace), Pod: metric.PodName(k.pod), Name: k.container}) {
				return
			}
		}
	}
}

// Entities returns the usage, and the requests if known, as a trace of package resize/replay. A name is
// NAMESPACE/POD/CONTAINER.
func (u *ContainerUsage) Entities(requests *ContainerUsage) (entities []trace.Entity) {
	byName := map[string]map[string]trace.Series{}
	for suffix, part := range map[string]*ContainerUsage{"": u, "_request": requests} {
		if part == nil {
			continue
		}
		for k, points := range part.series {
			if u.series[k] == nil {
				continue
			}
			name := strings.Join([]string{k.namespace, k.pod, k.container}, "/")
			if byName[name] == nil {
				byName[name] = map[string]trace.Series{}
			}
			byName[name][string(k.resource)+suffix] = points
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		entities = append(entities, trace.Entity{Name: name, Metrics: byName[name]})
	}
	return entities
}

// Read reads the usage of CPU and memory. If the server has no readings of a container, Points
// returns none for it; that is not an error.
func Read(ctx context.Context, h *history.Client, r Request) (*ContainerUsage, error) {
	step := stepFor(r.To.Sub(r.From))
	return r.read(ctx, h, "use", func(what resize.Resource) []string { return r.queries(what, step) })
}

// ReadRequests reads what containers requested: weir's metrics, or else those of kube-state-metrics.
func ReadRequests(ctx context.Context, h *history.Client, r Request) (*ContainerUsage, error) {
	return r.read(ctx, h, "requests", func(what resize.Resource) []string {
		query := func(series string, matchers ...string) string {
			return fmt.Sprintf("max by (namespace, pod, container) (%s{%s})", series, strings.Join(append(matchers, r.matchers()...), ","))
		}
		weir := map[resize.Resource]string{resize.CPU: "weir_container_cpu_request_cores", resize.Memory: "weir_container_memory_request_bytes"}
		return []string{query(weir[what]), query("kube_pod_container_resource_requests", fmt.Sprintf("resource=%q", what))}
	})
}

// read reads series of containers. The first of the queries that has readings of a container is used.
func (r *Request) read(ctx context.Context, h *history.Client, values string, queries func(resize.Resource) []string) (*ContainerUsage, error) {
	step := stepFor(r.To.Sub(r.From))
	// The times are truncated, so that the same request a minute later gives the same readings.
	from, to := r.From.Truncate(step), r.To.Truncate(step)
	u := &ContainerUsage{map[containerKey][]resize.UsagePoint{}}
	for _, what := range resize.Resources() {
		for _, query := range queries(what) {
			lines, err := h.Range(ctx, query, from, to, step)
			if err != nil {
				return nil, fmt.Errorf("read %s %s: %w", what, values, err)
			}
			found := map[containerKey][]resize.UsagePoint{}
			for _, line := range lines {
				k := containerKey{line.Labels["namespace"], line.Labels["pod"], line.Labels["container"], what}
				found[k] = append(found[k], line.Points...)
			}
			for k, points := range found {
				if u.series[k] == nil {
					u.series[k] = points
				}
			}
		}
	}
	return u, nil
}

// ReadNodes reads the usage of parts of nodes, of all nodes if none is named, from weir's own metrics. A memory
// reading is the working set at the time of a step, so that those of several parts can be subtracted.
func ReadNodes(ctx context.Context, h *history.Client, nodes []string, from, to time.Time) (*resize.NodeReadings, error) {
	step := stepFor(to.Sub(from))
	var patterns []string
	for _, c := range resize.PartCgroups() {
		patterns = append(patterns, strings.ReplaceAll(regexp.QuoteMeta(c.Pattern), `\*`, ".*"))
	}
	among := ""
	if len(nodes) > 0 {
		among = fmt.Sprintf("node=~%q,", strings.ReplaceAll(strings.Join(nodes, "|"), ".", `\.`))
	}
	readings := &resize.NodeReadings{}
	for _, series := range []struct {
		resource        resize.Resource
		format, matcher string
	}{
		{resize.CPU, "avg_over_time(weir_node_cpu_usage_cores{%s}[%ds])", ""},
		{resize.CPU, "avg_over_time(weir_system_cpu_usage_cores{%s}[%ds])", fmt.Sprintf("cgroup=~%q", strings.Join(patterns, "|"))},
		{resize.Memory, "weir_node_memory_working_set_bytes{%s}", ""},
		{resize.Memory, "weir_system_memory_working_set_bytes{%s}", fmt.Sprintf("cgroup=~%q", strings.Join(patterns, "|"))},
	} {
		arguments := []any{among + series.matcher}
		if series.resource == resize.CPU {
			arguments = append(arguments, int(max(5*time.Minute, step).Seconds()))
		}
		lines, err := h.Range(ctx, "max by (node, cgroup) ("+fmt.Sprintf(series.format, arguments...)+")", from.Truncate(step), to.Truncate(step), step)
		if err != nil {
			return nil, fmt.Errorf("read %s use of nodes: %w", series.resource, err)
		}
		for _, line := range lines {
			readings.Add(line.Labels["node"], line.Labels["cgroup"], series.resource, line.Points)
		}
	}
	return readings, nil
}

// stepFor returns the time between readings. It gives about two thousand readings for a span.
func stepFor(span time.Duration) time.Duration {
	return max(time.Minute, (span / 2000).Truncate(time.Minute))
}

// queries returns the possible queries for the usage of a resource, the best one first.
func (r *Request) queries(what resize.Resource, step time.Duration) []string {
	seconds := func(d time.Duration) string { return fmt.Sprintf("(%%s[%ds])", int(d.Seconds())) }
	window := seconds(max(5*time.Minute, step))
	if what == resize.Memory {
		return history.ContainerUsage("memory", r.matchers(), "max_over_time"+seconds(step), "")
	}
	return history.ContainerUsage("cpu", r.matchers(), "avg_over_time"+window, "rate"+window)
}

// matchers select the pods.
func (r *Request) matchers() (matchers []string) {
	if r.Namespace != "" {
		matchers = append(matchers, fmt.Sprintf("namespace=%q", r.Namespace))
	}
	if r.Pod != "" {
		matchers = append(matchers, fmt.Sprintf("pod=%q", r.Pod))
	}
	return matchers
}
