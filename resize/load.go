package resize

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/trace"
)

// Load is what the pods of a workload used of a resource, at the times at which an HPA would have read it.
type Load struct {
	Container string        `json:"container,omitempty"` // empty for whole pods
	Resource  Resource      `json:"resource"`
	Readings  []LoadReading `json:"readings"`
}

// LoadReading is a load at a time.
type LoadReading struct {
	At time.Time `json:"at"`
	// Pods is how many pods had a reading, and Missing how many others were there.
	Pods    int `json:"pods"`
	Missing int `json:"missing,omitempty"`
	// Milli is the sum over Pods, in thousandths: millicores, or thousandths of a byte.
	Milli int64 `json:"milli"`
}

// syncPeriod is how often the HPA controller reads metrics, by default.
const syncPeriod = 15 * time.Second

// Loads returns the loads of the pods of w and of each of its containers. use is that of RecommendWorkload.
func (w *Workload) Loads(use func(m Member, container string, r Resource) []UsagePoint, o *Options) (all []Load) {
	var names []string
	for i := range w.Template.Containers {
		if c := &w.Template.Containers[i]; c.Role != cluster.Init {
			names = append(names, c.Name)
		}
	}
	for _, r := range o.Resources {
		whole, each := make([][]usageSeries, len(w.Members)), make([]Load, len(names))
		for i, name := range names {
			one := make([][]usageSeries, len(w.Members))
			for j, m := range w.Members {
				if points := ValidPoints(use(m, name, r)); len(points) > 0 {
					one[j] = []usageSeries{newSeries(points)}
					whole[j] = append(whole[j], one[j]...)
				}
			}
			each[i] = Load{name, r, loadReadings(r, one)}
		}
		all = append(append(all, Load{"", r, loadReadings(r, whole)}), each...)
	}
	return all
}

// usageSeries is the usage of a container, sorted by time, and not empty.
type usageSeries struct {
	points   trace.Series
	interval time.Duration // the usual time between two readings
}

func newSeries(points trace.Series) usageSeries {
	slices.SortFunc(points, func(a, b UsagePoint) int { return a.At.Compare(b.At) })
	return usageSeries{points, cmp.Or(points.Step(), syncPeriod)}
}

// loadReadings adds up the usage of pods, given by pod and container. A pod is there from its first
// reading until one interval after its last. It has no reading while one of its containers has none.
func loadReadings(r Resource, pods [][]usageSeries) []LoadReading {
	times := map[int64]bool{} // in nanoseconds
	for _, s := range slices.Concat(pods...) {
		for _, p := range s.points {
			times[roundUp(p.At.UnixNano(), int64(syncPeriod))] = true
		}
	}
	readings := make([]LoadReading, 0, len(times))
	for _, nano := range slices.Sorted(maps.Keys(times)) {
		reading := LoadReading{At: time.Unix(0, nano).UTC()}
		for _, pod := range pods {
			reading.add(r, pod)
		}
		readings = append(readings, reading)
	}
	return readings
}

// add adds a pod to the reading.
func (l *LoadReading) add(r Resource, pod []usageSeries) {
	sum, exists, complete := int64(0), false, true
	for i := range pod {
		s := &pod[i]
		first, last := s.points[0].At, s.points[len(s.points)-1].At
		exists = exists || !first.After(l.At) && l.At.Sub(last) < max(s.interval, syncPeriod)
		value, ok := s.points.At(l.At, s.interval*5/2+syncPeriod+time.Nanosecond) // an older one is too old for a metrics API
		complete = complete && ok
		sum += WholeUnits(r, value) * thousandths(r) // each rounded up, as the metrics API does
	}
	switch {
	case exists && complete:
		l.Pods, l.Milli = l.Pods+1, l.Milli+sum
	case exists:
		l.Missing++
	}
}

// thousandths returns how many thousandths, as HPAs count, a unit of requests has: a millicore, or a byte.
func thousandths(r Resource) int64 {
	if r == Memory {
		return 1000
	}
	return 1
}
