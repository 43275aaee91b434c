package metric_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/quick"

	"github.com/weir-metrics/weir/metric"
)

func TestValuesAgreesWithAMap(t *testing.T) {
	// The simple second implementation is a map.
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		var v metric.Values
		want := map[metric.ID]float64{}
		for range 200 {
			id := metric.ID(r.IntN(int(metric.NumMetrics)))
			switch r.IntN(5) {
			case 0:
				v.Delete(id)
				delete(want, id)
			case 1:
				var more metric.Values
				for range r.IntN(4) {
					id, x := min(id+metric.ID(r.IntN(9)), metric.NumMetrics-1), r.Float64()
					more.Set(id, x)
					want[id] = x
				}
				v.SetAll(&more)
				from, has := metric.ID(r.IntN(int(metric.NumMetrics))), false
				for id := range want {
					has = has || id >= from
				}
				if v.HasFrom(from) != has {
					return false
				}
			default:
				x := r.Float64()
				v.Set(id, x)
				want[id] = x
			}
		}
		n := 0
		last := -1
		for id, x := range v.All() {
			if int(id) <= last || want[id] != x {
				return false
			}
			last = int(id)
			n++
		}
		for id := range metric.NumMetrics {
			x, ok := v.Get(id)
			y, has := want[id]
			if ok != has || x != y {
				return false
			}
		}
		return n == len(want) && v.Len() == n
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestZeroIsNotAbsent(t *testing.T) {
	var v metric.Values
	if got, ok := v.Get(metric.CPUUsage); ok || got != 0 {
		t.Errorf("empty Values has CPUUsage %v", got)
	}
	v.Set(metric.CPUUsage, 0)
	if _, ok := v.Get(metric.CPUUsage); !ok {
		t.Error("a zero that was set is absent")
	}
}

func TestValuesReuseAllocatesNothing(t *testing.T) {
	var v metric.Values
	fill := func() {
		v.Reset()
		for id := range metric.NumMetrics {
			v.Set(id, float64(id))
		}
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestCatalogue(t *testing.T) {
	name := regexp.MustCompile(`^[a-z_]+(/[a-z_]+)?$`)
	prometheus := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	seen, rates := map[string]metric.ID{}, map[metric.ID]metric.ID{}
	for i := range metric.Catalogue {
		d := &metric.Catalogue[i]
		if d.ID != metric.ID(i) || d.Name == "" {
			t.Errorf("metric %d has no entry of its own: %+v", i, d)
			continue
		}
		for _, n := range []string{d.Name, d.Prometheus} {
			if other, dup := seen[n]; dup {
				t.Errorf("%s: %v and %v share it", n, other, d.ID)
			}
			seen[n] = d.ID
			if id, ok := metric.ByName(n); !ok || id != d.ID {
				t.Errorf("ByName(%q) = %v, %v", n, id, ok)
			}
		}
		if !name.MatchString(d.Name) || !prometheus.MatchString(d.Prometheus) {
			t.Errorf("%s, %s: malformed", d.Name, d.Prometheus)
		}
		if d.Kinds == 0 {
			t.Errorf("%s exists nowhere", d.Name)
		}
		if !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: help %q is no sentence", d.Name, d.Help)
		}
		if (d.Type == metric.Cumulative) != strings.HasSuffix(d.Prometheus, "_total") {
			t.Errorf("%s is %v and called %s", d.Name, d.Type, d.Prometheus)
		}
		switch d.Unit {
		case metric.Nanoseconds:
			if !strings.Contains(d.Prometheus, "_seconds") {
				t.Errorf("%s counts %v and is called %s", d.Name, d.Unit, d.Prometheus)
			}
		case metric.Bytes, metric.BytesPerSecond:
			if !strings.Contains(d.Prometheus, "_bytes") {
				t.Errorf("%s counts %v and is called %s", d.Name, d.Unit, d.Prometheus)
			}
		}
		if d.Type == metric.Rate {
			of := d.RateOf.Describe()
			if of.Type != metric.Cumulative || of.Group != d.Group {
				t.Errorf("%s is the rate of %s, which is %v of group %v", d.Name, of.Name, of.Type, of.Group)
			}
			if other, twice := rates[d.RateOf]; twice {
				t.Errorf("%s has two rates: %v and %v", of.Name, other, d.ID)
			}
			rates[d.RateOf] = d.ID
		}
	}
}

func TestReasons(t *testing.T) {
	last := metric.Layer(0)
	for r := metric.PodPending; int(r) < metric.NumReasons; r++ {
		if r.Layer() < last {
			t.Errorf("%v lies further out than the reason before it: reasons are listed outermost first", r)
		}
		last = r.Layer()
		if got, ok := metric.ParseReason(r.String()); !ok || got != r {
			t.Errorf("ParseReason(%q) = %v, %v", r.String(), got, ok)
		}
	}
}

func TestBatchIsFilledAgainWithoutAllocating(t *testing.T) {
	var b metric.Batch
	fill := func() {
		b.Reset()
		for _, name := range []string{"a", "b", "c"} {
			s := b.Add(metric.Entity{Kind: metric.System, Name: name})
			if s.Values.Len() != 0 || s.Instance.Processes != -1 || s.Rejected() {
				t.Fatalf("a new sample is not empty: %+v", s)
			}
			s.Values.Set(metric.CPUUsage, 1)
			s.Reject(metric.OldPod)
		}
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestBatchGoesBackAfterTheLastRelease(t *testing.T) {
	var b metric.Batch
	back := 0
	b.Share(2, func(*metric.Batch) { back++ })
	b.Release()
	if back != 0 {
		t.Fatal("went back while one reader held it")
	}
	b.Release()
	if back != 1 {
		t.Fatalf("went back %d times, want once", back)
	}
}
