package resize_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/resize"
)

// monday is the beginning of the histories of these tests.
var monday = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// every returns the use of a container every five minutes.
func every(days int, use func(at time.Time) float64) (points []resize.UsagePoint) {
	for at := monday; at.Before(monday.Add(time.Duration(days) * 24 * time.Hour)); at = at.Add(5 * time.Minute) {
		points = append(points, resize.UsagePoint{At: at, Value: use(at)})
	}
	return points
}

// figure returns what is known of a container's CPU, and its proposed request.
func figure(t *testing.T, points []resize.UsagePoint) (*resize.UsageFigure, string) {
	t.Helper()
	o := resize.Defaults()
	o.Up = true
	p := &resize.PodResources{Namespace: "shop", Name: "web-0", Phase: "Running", Containers: []resize.ContainerResources{{Name: "app", Running: true, Requests: resize.Amounts{CPU: resize.Of(5000)}}}}
	a := resize.Recommend(p, func(_ string, r resize.Resource) []resize.UsagePoint {
		if r == resize.Memory {
			return nil
		}
		return points
	}, o).Requests[0]
	if a.Proposed == nil {
		t.Fatalf("nothing is proposed: %s", a.Message)
	}
	return a.Used, a.Proposed.String()
}

// An hour that is busy each day, or each week, decides about the request, although it is a small part of the
// time. One that was busy once does not.
func TestSeasons(t *testing.T) {
	hour := func(at time.Time) int { return at.Hour() }
	for name, c := range map[string]struct {
		days           int
		use            func(at time.Time) float64
		season, demand string
	}{
		"an hour of each day": {7, func(at time.Time) float64 {
			if hour(at) == 9 {
				return 0.8
			}
			return 0.1
		}, "from 09:00 to 10:00 UTC of a usual day", "920m"},
		"an hour of three days in four": {8, func(at time.Time) float64 {
			if hour(at) == 23 && at.Day()%4 != 0 {
				return 0.8
			}
			return 0.1
		}, "from 23:00 to 00:00 UTC of a usual day", "920m"},
		"an hour of each second day": {8, func(at time.Time) float64 {
			if hour(at) == 9 && at.Day()%2 == 0 {
				return 0.8
			}
			return 0.1
		}, "", "115m"},
		"an hour of each Sunday": {28, func(at time.Time) float64 {
			if hour(at) == 3 && at.Weekday() == time.Sunday {
				return 0.8
			}
			return 0.1
		}, "from 03:00 to 04:00 UTC of a usual Sunday", "920m"},
		"an hour of two days": {2, func(at time.Time) float64 {
			if hour(at) == 9 {
				return 0.8
			}
			return 0.1
		}, "", "115m"},
	} {
		f, proposed := figure(t, every(c.days, c.use))
		season := ""
		if f.Season != nil {
			season = f.Season.String()
		}
		if season != c.season || proposed != c.demand {
			t.Errorf("%s: season %q and request %s, want %q and %s", name, season, proposed, c.season, c.demand)
		}
	}
}

// Random use has no season that matters: chance makes one hour of the day a little busier than the others.
func TestNoiseIsNoSeason(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		f, _ := figure(t, every(7, func(time.Time) float64 { return r.ExpFloat64() / 5 }))
		if f.Season != nil && f.Season.Value.AsApproximateFloat64() > 1.25*f.Value.AsApproximateFloat64() {
			t.Errorf("%s at most %v, and at most %v in all", f.Season, &f.Season.Value, &f.Value)
		}
	}
}

// The risk is the share of readings above the proposal, and that of the last third above what the first two
// propose. It is held out from a day on.
func TestRisk(t *testing.T) {
	points := every(2, func(at time.Time) float64 { return at.Sub(monday).Hours() / 48 })
	f, _ := figure(t, points)
	// The first two thirds end at 0.667 cores; 95% of them and 15% more are 0.728, which the last third exceeds from
	// there to 1.
	const want = (1 - 0.728) / (1 - 0.667)
	if f.Risk.Above != 0 || f.Risk.HeldOut == nil || math.Abs(*f.Risk.HeldOut-want) > 0.01 {
		t.Errorf("the risk is %s, want nothing and %.3g%%", f.Risk.Text(), 100*want)
	}
	spikes := every(1, func(at time.Time) float64 {
		if at.Minute() == 0 && at.Hour()%2 == 0 {
			return 1
		}
		return 0.1
	})[:200] // less than a day
	if f, _ = figure(t, spikes); f.Risk.HeldOut != nil || math.Abs(f.Risk.Above-9./200) > 1e-9 {
		t.Errorf("the risk of less than a day is %s", f.Risk.Text())
	}
}
