package recordingcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// Usage plays the recording at path and returns what its containers used and requested, as a trace of
// package resize/replay. An entity is a container of a pod, over its restarts, and its name is
// NAMESPACE/POD/CONTAINER. namespace is the only one that is read, unless it is empty.
//
// A recording that ends in the middle gives the trace up to that point, and a *recording.TruncatedError.
func Usage(ctx context.Context, path, namespace string, line *cli.Progress, pipeline func(manager.Spec) []manager.Processor) ([]trace.Entity, error) {
	c := usageCollector{entities: map[metric.Entity]*trace.Entity{}}
	err := Play(ctx, path, line, pipeline, func(f *recording.Frame, snapshot *memory.Snapshot) error {
		if f.Kind != recording.Round {
			return nil
		}
		snapshot.EachOn(f.Node, metric.Container, func(s *metric.Sample) bool {
			if s.Entity.Part == "" && (namespace == "" || namespace == string(s.Entity.Namespace)) {
				c.add(s)
			}
			return true
		})
		if c.values > trace.MaxValues {
			return cli.Hintf(fmt.Errorf("%s has more than %.0f readings of containers", path, trace.MaxValues),
				"Name a namespace, or cut the recording: weir recording cut %s --to 6h -o FILE", path)
		}
		return nil
	})
	var truncated *recording.TruncatedError
	if err != nil && !errors.As(err, &truncated) {
		return nil, err
	}
	var entities []trace.Entity
	for _, e := range slices.SortedFunc(maps.Values(c.entities), func(a, b *trace.Entity) int { return strings.Compare(a.Name, b.Name) }) {
		entities = append(entities, *e)
	}
	if len(entities) == 0 {
		containers := "containers"
		if namespace != "" {
			containers += " of namespace " + namespace
		}
		return nil, errors.Join(err, cli.Hintf(fmt.Errorf("%s has no use of %s", path, containers), "weir recording info %s shows what it has.", path))
	}
	return entities, err
}

// usageCollector collects the readings of containers.
type usageCollector struct {
	entities map[metric.Entity]*trace.Entity
	values   int
}

// add adds the readings of s that are newer than those before.
func (c *usageCollector) add(s *metric.Sample) {
	key := metric.Entity{Namespace: s.Entity.Namespace, Pod: s.Entity.Pod, Name: s.Entity.Name}
	e := c.entities[key]
	for _, reading := range []struct {
		name         string
		use, request metric.ID
		group        metric.Group
	}{
		{"cpu", metric.CPUUsageRate, metric.CPURequest, metric.CPU},
		{"memory", metric.MemoryWorkingSet, metric.MemoryRequest, metric.Memory},
	} {
		v, ok := s.Values.Get(reading.use)
		at := s.Time(reading.group)
		if !ok || !s.Servable(reading.group) || at.IsZero() {
			continue
		}
		if e == nil {
			e = &trace.Entity{Name: fmt.Sprintf("%s/%s/%s", key.Namespace, key.Pod, key.Name), Metrics: map[string]trace.Series{}}
			c.entities[key] = e
		}
		before := e.Metrics[reading.name]
		if len(before) > 0 && !at.After(before[len(before)-1].At) {
			continue
		}
		unit := reading.use.Describe().Unit.Prometheus()
		e.Metrics[reading.name] = append(before, trace.Reading{At: at, Value: v * unit})
		c.values++
		if request, ok := s.Values.Get(reading.request); ok {
			requests := e.Metrics[reading.name+"_request"]
			if request *= unit; len(requests) == 0 || requests[len(requests)-1].Value != request {
				e.Metrics[reading.name+"_request"] = append(requests, trace.Reading{At: at, Value: request})
			}
		}
	}
}
