package resize

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
)

// dice generates random pods, readings and options, including absurd ones.
type dice struct{ *rand.Rand }

func (d dice) amounts() (a Amounts) {
	for _, r := range Resources() {
		if d.IntN(4) > 0 {
			*a.of(r) = Of([]int64{0, 1, 100, 1000, 1 << 20, 64 << 20, 1 << 40}[d.IntN(7)])
		}
	}
	return a
}

func (d dice) pod() *PodResources {
	p := &PodResources{Namespace: "shop", Name: "cart", Phase: string(cluster.Running)}
	for i := range 1 + d.IntN(3) {
		c := ContainerResources{Name: string(rune('a' + i)), Running: d.IntN(8) > 0, Role: []cluster.Role{cluster.Regular, cluster.Regular, cluster.Sidecar, cluster.Init}[d.IntN(4)], Limits: d.amounts()}
		for _, r := range Resources() {
			limit := c.Limits.Get(r)
			switch d.IntN(4) {
			case 0: // a request that equals the limit, which is also the default if only the limit is set
				*c.Requests.of(r) = limit
			case 1:
				if limit.Set {
					*c.Requests.of(r) = limit
				}
			case 2:
				*c.Requests.of(r) = Of(limit.Value / 2)
			default:
				if limit.Set {
					*c.Requests.of(r) = Of(limit.Value * 3 / 4)
				} else {
					*c.Requests.of(r) = Of(1000)
				}
			}
		}
		if d.IntN(5) == 0 {
			c.RestartsFor = []Resource{Resources()[d.IntN(2)]}
		}
		p.Containers = append(p.Containers, c)
	}
	p.Static, p.OldKubelet = d.IntN(20) == 0, d.IntN(20) == 0
	return p
}

func (d dice) points() []UsagePoint {
	points := make([]UsagePoint, d.IntN(100))
	scale := math.Pow(10, float64(d.IntN(14)-3))
	for i := range points {
		points[i] = UsagePoint{At: begin.Add(time.Duration(d.IntN(60)) * time.Minute), Value: d.Float64() * scale}
		if d.IntN(50) == 0 {
			points[i].Value = []float64{math.NaN(), math.Inf(1), -1, 1e300}[d.IntN(4)]
		}
	}
	return points
}

// TestRecommendationsHold checks random recommendations: Check allows them, they keep the QoS
// class, they are between the floor and the limit and, unless Up is set, below the request, and
// each one has a message.
func TestRecommendationsHold(t *testing.T) {
	d := dice{rand.New(rand.NewPCG(5, 6))}
	proposed := 0
	for range 20_000 {
		p, o := d.pod(), Defaults()
		o.Up, o.Limits = d.IntN(2) == 0, d.IntN(2) == 0
		rec := Recommend(p, func(string, Resource) []UsagePoint { return d.points() }, o)
		changes := rec.Changes()
		refusals, err := Check(p, changes)
		if err != nil || len(changes) > 0 && len(refusals) > 0 {
			t.Fatalf("recommended is what is refused: %v %v, of %+v", refusals, err, p)
		}
		after, _ := p.With(changes)
		if ClassOf(after) != ClassOf(p) {
			t.Fatalf("the class changes from %s to %s, of %+v", ClassOf(p), ClassOf(after), p)
		}
		if !o.Up && (rec.Frees.CPU.Sign() < 0 || rec.Frees.Memory.Sign() < 0) {
			t.Fatalf("frees %v, of %+v", rec.Frees, p)
		}
		for _, a := range rec.Requests {
			if a.Message == "" || a.Reason.Changes() != (a.Proposed != nil) {
				t.Fatalf("got %+v, of %+v", a, p)
			}
		}
		for _, c := range changes {
			proposed++
			was := p.Container(c.Container).Requests.Get(c.Resource)
			limit := after.Container(c.Container).Limits.Get(c.Resource)
			switch {
			case !o.Up && (!was.Set || c.Request.Value >= was.Value),
				c.Request.Value < o.aim(c.Resource).Floor && c.Request.Value != limit.Value,
				limit.Set && c.Request.Value > limit.Value:
				t.Fatalf("got %+v where %+v was requested, of %+v", c, was, p)
			}
		}
	}
	if proposed < 2000 {
		t.Errorf("only %d changes were proposed: the random input is one-sided", proposed)
	}
}
