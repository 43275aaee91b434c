package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/history"
)

// city is a workload with a real autoscaler. It has more detail than the model, as a cluster does:
// pods take different times to start, have unequal shares of the load, and are measured at
// different times with different windows. The autoscaler does not sync at the times of the trace.
type city struct {
	rand   *rand.Rand
	spec   *autoscalingv2.HorizontalPodAutoscalerSpec
	demand func(time.Duration) float64 // cores
	pods   []citizen
	memory autoscaler.Memory
	status autoscalingv2.HorizontalPodAutoscalerStatus
}

type citizen struct {
	name           string
	started, ready time.Time
	weight         float64
	sample         *autoscaler.PodSample
	phase          time.Duration // the phase of its node's scrapes
}

func (c *city) add(now time.Time, delay time.Duration) {
	c.pods = append(c.pods, citizen{
		name: "web-" + now.Format("150405") + "-" + string(rune('a'+len(c.pods)%26)) + string(rune('a'+len(c.pods)/26)), started: now, ready: now.Add(delay),
		weight: 0.9 + 0.2*c.rand.Float64(), phase: time.Duration(c.rand.IntN(15)) * time.Second,
	})
}

// use returns the current usage of pod i.
func (c *city) use(i int, now time.Time) float64 {
	sum := 0.0
	for _, p := range c.pods {
		if !now.Before(p.ready) {
			sum += p.weight
		}
	}
	if now.Before(c.pods[i].ready) {
		return 0.05
	}
	return c.demand(now.Sub(began)) * c.pods[i].weight / sum
}

// second simulates one second.
func (c *city) second(now time.Time) {
	for i := range c.pods {
		p := &c.pods[i]
		if (now.Sub(began)+p.phase)%(15*time.Second) == 0 && now.Sub(p.started) > 20*time.Second {
			p.sample = &autoscaler.PodSample{Pod: p.name, Milli: int64(math.Ceil(c.use(i, now) * 1000)), At: now, Window: 15 * time.Second}
		}
	}
	if now.Sub(began)%(15*time.Second) != 7*time.Second {
		return
	}
	self := types.NamespacedName{Namespace: "shop", Name: "web"}
	settings := autoscaler.DefaultSettings()
	in := &autoscaler.Input{Now: now, Settings: &settings, Object: self, Spec: c.spec, Status: &c.status, Memory: c.memory,
		Scale: autoscaler.Scale{SpecReplicas: int32(len(c.pods)), StatusReplicas: int32(len(c.pods)), Selector: "a=b"}, Overlapping: []types.NamespacedName{self}}
	reading := autoscaler.Reading{At: now}
	for _, p := range c.pods {
		seen := autoscaler.PodInput{Name: p.name, Phase: cluster.Running, Started: p.started, Ready: cluster.ReadyTrue, ReadySince: p.ready,
			Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 500, Set: true}}}}}
		if now.Before(p.ready) {
			seen.Ready, seen.ReadySince = cluster.ReadyFalse, p.started
		}
		in.Pods = append(in.Pods, seen)
		if p.sample != nil {
			reading.Samples = append(reading.Samples, *p.sample)
		}
	}
	in.ReadMetric = func(int) autoscaler.Reading { return reading }
	d := autoscaler.Decide(in)
	done := d.Conclude(nil)
	c.memory, c.status = done.Memory, done.Status
	if d.Rescale {
		for len(c.pods) < int(d.Desired) {
			c.add(now, time.Duration(15+c.rand.IntN(15))*time.Second)
		}
		c.pods = c.pods[:d.Desired]
	}
}

// record runs c for a time, and returns what a Prometheus would have stored: the sum of the
// measurements, and the number of pods.
func (c *city) record(span, step time.Duration) *Trace {
	request := autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 500, Set: true}}
	t := &Trace{Namespace: "shop", Target: "Deployment/web", From: began, To: began.Add(span), Step: step, Startup: Startup{Median: 22 * time.Second, Pods: 9}}
	app := TraceContainer{Name: "app", Requests: request}
	long := began.Add(-time.Hour)
	for range 3 {
		c.add(long, 0)
	}
	for now := began; now.Before(t.To); now = now.Add(time.Second) {
		c.second(now)
		if now.Sub(began)%step != 0 {
			continue
		}
		sum := 0.0
		for i := range c.pods {
			if s := c.pods[i].sample; s != nil {
				sum += float64(s.Milli) / 1000
			} else {
				sum += c.use(i, now)
			}
		}
		app.CPU = append(app.CPU, history.Point{At: now, Value: sum})
		t.Replicas = append(t.Replicas, history.Point{At: now, Value: float64(len(c.pods))})
	}
	t.Containers = []TraceContainer{app}
	return t
}

// TestReplayIsFaithful checks that a replay of the real specification gives about the recorded
// number of replicas.
func TestReplayIsFaithful(t *testing.T) {
	day := func(at time.Duration) float64 {
		// The load rises for six hours, has waves of 15 minutes, and a peak.
		v := 1 + 3*(1-math.Cos(at.Hours()/6*2*math.Pi))/2 + 0.3*math.Sin(at.Minutes()/15*2*math.Pi)
		if at > 3*time.Hour && at < 200*time.Minute {
			v += 3
		}
		return v
	}
	for name, yaml := range map[string]string{
		"default": "{maxReplicas: 30, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]}",
		"behavior": `{maxReplicas: 30, metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 350m}}}],
  behavior: {scaleUp: {stabilizationWindowSeconds: 30, policies: [{type: Pods, value: 2, periodSeconds: 60}]}, scaleDown: {stabilizationWindowSeconds: 120, policies: [{type: Percent, value: 20, periodSeconds: 60}]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				c := &city{rand: rand.New(rand.NewPCG(seed, 1)), spec: readSpec(t, yaml), demand: day}
				trace := c.record(6*time.Hour, 15*time.Second)
				result, err := Run(trace, c.spec, DefaultOptions(trace))
				if err != nil {
					t.Fatal(err)
				}
				near, same := 0, 0
				for _, p := range result.Points {
					d := p.Desired - p.Recorded
					if d == 0 {
						same++
					}
					if d >= -1 && d <= 1 {
						near++
					}
				}
				n := len(result.Points)
				got, was := result.Totals, result.Recorded
				t.Logf("seed %d: same %.1f%%, within one %.1f%%, pod-hours %.2f of %.2f, events %d of %d, peak %d of %d", seed,
					100*float64(same)/float64(n), 100*float64(near)/float64(n), got.PodHours, was.PodHours, got.Ups+got.Downs, was.Ups+was.Downs, got.Peak, was.Peak)
				if near*100 < 97*n {
					t.Errorf("seed %d: the count was within one pod of the recorded one in %d of %d syncs, want 97%%", seed, near, n)
				}
				if off := math.Abs(got.PodHours/was.PodHours - 1); off > 0.03 {
					t.Errorf("seed %d: %.2f pod-hours, recorded %.2f: want at most 3%% between them", seed, got.PodHours, was.PodHours)
				}
				again, err := Run(trace, c.spec, DefaultOptions(trace))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(result, again); diff != "" {
					t.Errorf("seed %d: the same replay gave another result (-first +second)\n%s", seed, diff)
				}
			}
		})
	}
}
