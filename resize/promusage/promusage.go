// Package promusage reads what containers used over days out of a Prometheus that
// scrapes weir (/metrics/cluster) or the kubelets (/metrics/cadvisor).
//
// A reading is the mean CPU of five minutes or one step, whichever is longer, and the
// highest working set of a step: a percentile of CPU says less of short bursts than that
// of weir's own memory does, and the highest working set is as high as any that was
// scraped. A container that was restarted goes on as the same one.
package promusage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/history"
	"github.com/weir-metrics/weir/resize"
)

// Request says what to read.
type Request struct {
	// Namespace is the pods'; empty for those of all namespaces. Pod is one's name;
	// empty for all.
	Namespace, Pod string
	From, To       time.Time
}

// Usage is what containers used. The zero Usage, and a nil one, know nothing.
type Usage struct {
	series map[containerKey][]resize.UsagePoint
}

type containerKey struct {
	namespace, pod, container string
	resource                  resize.Resource
}

// Points returns what a container used of a resource, in order of time.
func (u *Usage) Points(namespace, pod, container string, r resize.Resource) []resize.UsagePoint {
	if u == nil {
		return nil
	}
	return u.series[containerKey{namespace, pod, container, r}]
}

// Read asks for CPU and memory. That a server knows nothing is no error: of which
// container it knows nothing, Used says.
func Read(ctx context.Context, h *history.History, r Request) (*Usage, error) {
	step := stepFor(r.To.Sub(r.From))
	// Steady points: the same question a minute later gives the same answers.
	from, to := r.From.Truncate(step), r.To.Truncate(step)
	u := &Usage{map[containerKey][]resize.UsagePoint{}}
	for _, what := range resize.Resources() {
		// The first of them that knows a container tells of it.
		for _, query := range r.queries(what, step) {
			lines, err := h.Range(ctx, query, from, to, step)
			if err != nil {
				return nil, fmt.Errorf("read %s use: %w", what, err)
			}
			told := map[containerKey][]resize.UsagePoint{}
			for _, line := range lines {
				k := containerKey{line.Labels["namespace"], line.Labels["pod"], line.Labels["container"], what}
				for _, p := range line.Points {
					told[k] = append(told[k], resize.UsagePoint{At: p.Time, Value: p.Value})
				}
			}
			for k, points := range told {
				if u.series[k] == nil {
					u.series[k] = points
				}
			}
		}
	}
	return u, nil
}

// stepFor returns the distance of readings: some two thousand of a span.
func stepFor(span time.Duration) time.Duration {
	return max(time.Minute, (span / 2000).Truncate(time.Minute))
}

// queries are the ways to ask what containers use of a resource.
func (r *Request) queries(what resize.Resource, step time.Duration) []string {
	window := max(5*time.Minute, step)
	if what == resize.Memory {
		return []string{
			maxByContainer(fmt.Sprintf("max_over_time(weir_container_memory_working_set_bytes%s[%s])", r.selector(), promDuration(step))),
			maxByContainer(fmt.Sprintf("max_over_time(container_memory_working_set_bytes%s[%s])", r.selector(containerMatchers...), promDuration(step))),
		}
	}
	return []string{
		maxByContainer(fmt.Sprintf("avg_over_time(weir_container_cpu_usage_cores%s[%s])", r.selector(), promDuration(window))),
		maxByContainer(fmt.Sprintf("rate(container_cpu_usage_seconds_total%s[%s])", r.selector(containerMatchers...), promDuration(window))),
	}
}

// containerMatchers are the containers among cAdvisor's cgroups.
var containerMatchers = []string{`container!=""`, `container!="POD"`}

// maxByContainer is each container once, whoever scraped it how often: right after a restart both
// its cgroups are told.
func maxByContainer(query string) string { return "max by (namespace, pod, container) (" + query + ")" }

func (r *Request) selector(more ...string) string {
	var all []string
	if r.Namespace != "" {
		all = append(all, fmt.Sprintf("namespace=%q", r.Namespace))
	}
	if r.Pod != "" {
		all = append(all, fmt.Sprintf("pod=%q", r.Pod))
	}
	return "{" + strings.Join(append(all, more...), ",") + "}"
}

func promDuration(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
