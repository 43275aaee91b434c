// Package promreplay reads the trace of a replay from a Prometheus: the usage of the target's pods
// from weir's metrics or from those of the kubelets (cAdvisor), and their requests and states from
// kube-state-metrics.
//
// For each value there are several queries. Read uses the first one that covers nine tenths of the
// time, or else the one that covers most of it. An error lists the queries.
//
// Prometheus repeats the last value of a series for five minutes after a missed scrape, so the
// trace does not show shorter gaps.
package promreplay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/internal/history"
)

// Request shows which data to read.
type Request struct {
	Namespace string
	// Kind and Name are the kind and name of the target: "Deployment", "web".
	Kind, Name string
	// Autoscaler is the name of the HPA that gives the number of replicas. It may be empty.
	Autoscaler string
	// Pods is a regular expression for the names of the pods. If it is empty, replay.PodsOf(Kind,
	// Name) is used.
	Pods     string
	From, To time.Time
	// Resources are the required resources: "cpu", "memory".
	Resources []string
	// Named has the queries of custom and external metrics, by name. The series of a query are added
	// up.
	Named map[string]string
}

// AbsentError is the error if no query found some data.
type AbsentError struct {
	What string
	// Tried are the queries that were tried.
	Tried []string
}

// Error names the missing data and the queries.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("the Prometheus knows no %s in that time; asked were:\n  %s", e.What, strings.Join(e.Tried, "\n  "))
}

// Read returns the trace. An *AbsentError names data that the server does not have.
func Read(ctx context.Context, h *history.Client, r Request) (*replay.Trace, error) {
	r.Pods = cmp.Or(r.Pods, replay.PodsOf(r.Kind, r.Name))
	step := history.Step(r.To.Sub(r.From))
	// The times are truncated, so that the same request a day later gives the same answers.
	r.From, r.To = r.From.Truncate(step), r.To.Truncate(step)
	rd := &traceReader{ctx: ctx, history: h, request: &r, containers: map[string]*replay.TraceContainer{},
		trace: &replay.Trace{Namespace: r.Namespace, Target: r.Kind + "/" + r.Name, From: r.From, To: r.To, Step: step, Named: map[string]replay.Series{}}}
	for _, read := range []func() error{rd.readUsage, rd.readSpecs, rd.readReplicas, rd.readStartup, rd.readNamed} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rd.containers)) {
		rd.trace.Containers = append(rd.trace.Containers, *rd.containers[name])
	}
	return rd.trace, nil
}

// traceReader has the state of a Read.
type traceReader struct {
	ctx        context.Context
	history    *history.Client
	request    *Request
	trace      *replay.Trace
	containers map[string]*replay.TraceContainer
	// measured is the number of measured pods. It is used if no query gives the number of replicas.
	measured replay.Series
}

func (t *traceReader) addNote(format string, args ...any) {
	t.trace.Notes = append(t.trace.Notes, fmt.Sprintf(format, args...))
}

// query returns the result of a query over the time of the trace.
func (t *traceReader) query(query string) ([]history.TimeSeries, error) {
	return t.history.Range(t.ctx, query, t.request.From, t.request.To, t.trace.Step)
}

// bestAnswer returns the answer of the first query that covers nine tenths of the time, or else of
// the one that covers most of it. It is not an error if there is no data. wrap makes a query from
// each element of from.
func (t *traceReader) bestAnswer(what string, from []string, wrap func(string) string) (lines []history.TimeSeries, query string, err error) {
	covered := 0
	for _, candidate := range from {
		found, err := t.query(wrap(candidate))
		if err != nil {
			return nil, "", fmt.Errorf("read %s: %w", what, err)
		}
		points := 0
		for _, l := range found {
			points = max(points, len(l.Points))
		}
		if points > covered {
			lines, query, covered = found, candidate, points
		}
		if points*10 >= 9*int(t.request.To.Sub(t.request.From)/t.trace.Step) {
			break
		}
	}
	return lines, query, nil
}

func unwrapped(query string) string { return query }

// series returns the points with finite values. It changes points.
func series(points []history.Point) replay.Series {
	return slices.DeleteFunc(points, func(p history.Point) bool { return math.IsNaN(p.Value) || math.IsInf(p.Value, 0) })
}

// readUsage reads the usage of containers and the number of measured pods.
func (t *traceReader) readUsage() error {
	for _, resource := range []string{"cpu", "memory"} {
		needed := slices.Contains(t.request.Resources, resource)
		if !needed && resource == "memory" {
			continue
		}
		from := t.request.usageQueries(resource)
		lines, chosen, err := t.bestAnswer(resource+" use", from, func(q string) string { return "sum by (container) (" + q + ")" })
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			if !needed {
				continue
			}
			return &AbsentError{resource + " use of pods " + t.request.Pods + " in namespace " + t.request.Namespace, from}
		}
		t.keepContainers(resource, lines)
		if t.measured == nil {
			counted, err := t.query("count(count by (pod) (" + chosen + "))")
			if err != nil {
				return fmt.Errorf("count pods: %w", err)
			}
			for _, l := range counted {
				t.measured = series(l.Points)
			}
		}
	}
	return nil
}

// keepContainers assigns series to containers. It omits a container that was measured for less than
// half of the time of the others, because it is an init or debug container.
func (t *traceReader) keepContainers(resource string, lines []history.TimeSeries) {
	most := 0
	for _, l := range lines {
		most = max(most, len(l.Points))
	}
	for _, l := range lines {
		name := l.Labels["container"]
		if len(l.Points)*2 < most {
			t.addNote("container %s was measured for %d%% of the time: it counts as temporary and is left out", name, len(l.Points)*100/most)
			continue
		}
		c := t.containers[name]
		if c == nil {
			c = &replay.TraceContainer{Name: name}
			t.containers[name] = c
		}
		if resource == "cpu" {
			c.CPU = series(l.Points)
		} else {
			c.Memory = series(l.Points)
		}
	}
}

// readSpecs reads the last known requests and limits.
func (t *traceReader) readSpecs() error {
	for _, what := range []string{"request", "limit"} {
		for _, resource := range []string{"cpu", "memory"} {
			if resource == "memory" && !slices.Contains(t.request.Resources, resource) {
				continue
			}
			lines, _, err := t.bestAnswer(resource+" "+what, t.request.specQueries(what, resource), unwrapped)
			if err != nil {
				return err
			}
			for _, l := range lines {
				t.setSpec(what, resource, l)
			}
		}
	}
	return nil
}

func (t *traceReader) setSpec(what, resource string, l history.TimeSeries) {
	c := t.containers[l.Labels["container"]]
	if c == nil || len(l.Points) == 0 {
		return
	}
	first, last := l.Points[0].Value, l.Points[len(l.Points)-1].Value
	if first != last {
		t.addNote("container %s's %s %s changed from %v to %v: replayed as if it had always been the latter", c.Name, resource, what, first, last)
	}
	to := &c.Requests
	if what == "limit" {
		to = &c.Limits
	}
	// Bytes are whole numbers. Cores have thousandths and are rounded up, as quantities are.
	if resource == "memory" {
		to.Memory = autoscaler.MilliQuantity{Milli: int64(math.Round(last) * 1000), Set: true}
	} else {
		to.CPU = autoscaler.MilliQuantity{Milli: int64(math.Ceil(math.Round(last*1e9) / 1e6)), Set: true}
	}
}

// readReplicas reads the number of pods.
func (t *traceReader) readReplicas() error {
	lines, _, err := t.bestAnswer("replicas", t.request.replicaQueries(), unwrapped)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		t.trace.Replicas = t.measured
		if len(t.measured) > 0 {
			t.addNote("the requested number of replicas is unknown; measured pods are counted instead")
		}
		return nil
	}
	t.trace.Replicas = series(lines[0].Points)
	short, counted := 0, 0
	hold := t.trace.Step * 5 / 2
	for _, v := range t.trace.Replicas {
		if n, ok := t.measured.At(v.At, hold); ok && v.Value > 0 {
			counted++
			// A tenth of the pods may not be measured yet.
			if n < math.Floor(v.Value*0.9) {
				short++
			}
		}
	}
	if short*20 > counted {
		t.addNote("in %d%% of the time fewer pods were measured than there were: the demand then is too low", short*100/counted)
	}
	return nil
}

// readStartup reads how long pods took to become ready, if kube-state-metrics has this metric.
func (t *traceReader) readStartup() error {
	answer, err := t.history.Query(t.ctx, t.request.startupQuery(t.request.To.Sub(t.request.From)), t.request.To)
	if err != nil {
		return fmt.Errorf("read startup times: %w", err)
	}
	var delays []time.Duration
	for _, s := range answer.Series {
		if s.Value >= 0 {
			delays = append(delays, time.Duration(s.Value*float64(time.Second)))
		}
	}
	t.trace.Startup = replay.StartupOf(delays)
	return nil
}

// readNamed reads custom and external metrics.
func (t *traceReader) readNamed() error {
	for _, name := range slices.Sorted(maps.Keys(t.request.Named)) {
		query := t.request.Named[name]
		// The line feed ends a comment at the end of the query.
		lines, err := t.query("sum(" + query + "\n)")
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if len(lines) == 0 {
			return &AbsentError{"metric " + name, []string{"sum(" + query + ")"}}
		}
		t.trace.Named[name] = series(lines[0].Points)
	}
	return nil
}
