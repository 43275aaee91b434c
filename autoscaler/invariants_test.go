package autoscaler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// TestInvariants checks that the decisions for random inputs keep the invariants of all decisions.
func TestInvariants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rescaled, recounted, counted := 0, 0, 0
	for range 1000 {
		bytes := make([]byte, 400)
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		d := holds(t, bytes)
		if t.Failed() {
			t.Fatalf("of %x", bytes)
		}
		if d.Rescale {
			rescaled++
		}
		for i := range d.Metrics {
			if d.Metrics[i].Recounted {
				recounted++
			} else if d.Metrics[i].Err == nil {
				counted++
			}
		}
	}
	// The random inputs must lead to enough different decisions.
	if rescaled < 100 || recounted < 40 || counted < 100 {
		t.Errorf("of 1000 random worlds %d rescaled, with %d metrics recounted and %d not: make them livelier", rescaled, recounted, counted)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		bytes := make([]byte, 300)
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		f.Add(bytes)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { holds(t, bytes) })
}

// holds decides about the input that the bytes describe, and checks the invariants.
func holds(t *testing.T, bytes []byte) *Decision {
	t.Helper()
	fixture := func() *Input { return newRandom(bytes).input() }
	in := fixture()
	if err := Validate(in.Spec, *in.Settings); err != nil {
		t.Fatalf("the dice made a specification that no API server stores: %v", err)
	}
	d := Decide(in)
	pure(t, in, fixture(), d)
	bounded(t, in, d)
	leads(t, d)
	for i := range d.Metrics {
		derives(t, in, &d.Metrics[i])
	}
	orderless(t, fixture(), d)
	again := fixture()
	again.Reuse = Decide(fixture())
	if diff := cmp.Diff(d, Decide(again), same); diff != "" {
		t.Errorf("in memory used before the decision differs:\n%s", diff)
	}
	return d
}

var same = cmp.Options{
	cmp.AllowUnexported(Decision{}, statusDraft{}),
	cmpopts.EquateNaNs(), // a ratio may be NaN
	cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
}

// pure checks that the same input gives the same decision, and that the input is not changed.
func pure(t *testing.T, in, untouched *Input, d *Decision) {
	t.Helper()
	if diff := cmp.Diff(d, Decide(in), same); diff != "" {
		t.Errorf("a second decision differs:\n%s", diff)
	}
	done := d.Conclude(nil)
	d.Conclude(errAPI)
	if diff := cmp.Diff(done, d.Conclude(nil), same); diff != "" {
		t.Errorf("a second conclusion differs:\n%s", diff)
	}
	before, after := *untouched, *in
	before.ReadMetric, after.ReadMetric = nil, nil
	if diff := cmp.Diff(before, after, same); diff != "" {
		t.Errorf("the input was changed:\n%s", diff)
	}
	for _, r := range in.Memory.Recommendations[len(in.Memory.Recommendations):cap(in.Memory.Recommendations)] {
		if r != (ReplicaRecommendation{}) {
			t.Errorf("wrote %v behind the end of the recommendations", r)
		}
	}
	for _, list := range [][]ReplicaChange{in.Memory.Ups, in.Memory.Downs} {
		for _, c := range list[len(list):cap(list)] {
			if c != (ReplicaChange{}) {
				t.Errorf("wrote %v behind the end of the changes", c)
			}
		}
	}
}

// bounded checks that a new count is within its bounds, and that the memory grows by at most one
// entry.
func bounded(t *testing.T, in *Input, d *Decision) {
	t.Helper()
	lowest, highest := *in.Spec.MinReplicas, in.Spec.MaxReplicas
	if d.Rescale && (d.Desired < lowest || d.Desired > highest) {
		t.Errorf("rescales from %d to %d, outside %d to %d: %v", d.Current, d.Desired, lowest, highest, d.Steps)
	}
	if d.Rescale == (d.Desired == d.Current) && d.Steps != nil {
		t.Errorf("rescale %v from %d to %d", d.Rescale, d.Current, d.Desired)
	}
	done := d.Conclude(nil)
	seed := 0
	if len(in.Memory.Recommendations) == 0 {
		seed = 1
	}
	if got, most := len(done.Memory.Recommendations), len(in.Memory.Recommendations)+seed+1; got > most {
		t.Errorf("remembers %d recommendations, at most %d expected", got, most)
	}
	grown := len(done.Memory.Ups) + len(done.Memory.Downs) - len(in.Memory.Ups) - len(in.Memory.Downs)
	if grown > 1 || grown > 0 && !d.Rescale {
		t.Errorf("remembers %d more changes, rescale %v", grown, d.Rescale)
	}
}

// leads checks that the steps lead from the current count to the desired one, and that each step
// begins where the last one ended.
func leads(t *testing.T, d *Decision) {
	t.Helper()
	if len(d.Steps) == 0 {
		if d.Err == nil || d.Rescale {
			t.Errorf("no step, rescale %v, error %v", d.Rescale, d.Err)
		}
		return
	}
	if d.Steps[0].From != d.Current {
		t.Errorf("the first step begins at %d, the count is %d", d.Steps[0].From, d.Current)
	}
	for i := 1; i < len(d.Steps); i++ {
		if d.Steps[i].From != d.Steps[i-1].To {
			t.Errorf("step %v begins at %d, %v ended at %d", d.Steps[i].Kind, d.Steps[i].From, d.Steps[i-1].Kind, d.Steps[i-1].To)
		}
	}
	if end := d.Steps[len(d.Steps)-1].To; end != d.Desired {
		t.Errorf("the steps end at %d, desired are %d", end, d.Desired)
	}
}

// derives checks that a metric's numbers follow from its pods, in the way a reader would compute
// them.
func derives(t *testing.T, in *Input, m *MetricDecision) {
	t.Helper()
	var usage, requests, assumed, assumedRequests int64
	counted, given, strange := 0, 0, 0
	for _, p := range m.Pods {
		switch {
		case p.Class == Counted:
			counted++
			usage += p.Usage
			requests += p.Request
		case p.Class == NotInTarget:
			strange++
			if !m.Percent {
				usage += p.Usage
			}
		case p.HasAssumed:
			given++
			assumed += p.Assumed
			assumedRequests += p.Request
		}
	}
	if m.Err != nil {
		if m.Outcome != OutcomeNone || m.Reason == "" || m.Proposal != 0 {
			t.Errorf("%s failed (%v) with outcome %v, reason %q, proposal %d", m.Name, m.Err, m.Outcome, m.Reason, m.Proposal)
		}
		return
	}
	ratio := func(usage, requests int64, n int) float64 {
		if m.Percent {
			return float64(int32(usage*100/requests)) / float64(m.Target)
		}
		return float64(usage/int64(n)) / float64(m.Target)
	}
	switch m.Type {
	case autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.PodsMetricSourceType:
		if len(m.Pods) != len(in.Pods)+strange || m.Count != counted {
			t.Errorf("%s: %d cases of %d pods and %d strangers, counts %d of %d", m.Name, len(m.Pods), len(in.Pods), strange, m.Count, counted)
		}
		if want := ratio(usage, requests, counted+strange); m.Ratio != want {
			t.Errorf("%s: ratio %v, its pods give %v", m.Name, m.Ratio, want)
		}
		if m.Recounted {
			if m.RecountedPods != counted+strange+given {
				t.Errorf("%s: recounted %d, its pods are %d", m.Name, m.RecountedPods, counted+strange+given)
			}
			if want := ratio(usage+assumed, requests+assumedRequests, m.RecountedPods); m.RecountedRatio != want {
				t.Errorf("%s: second ratio %v, its pods give %v", m.Name, m.RecountedRatio, want)
			}
		} else if given > 0 {
			t.Errorf("%s: %d pods were given a number without a recount", m.Name, given)
		}
		r, n := m.Ratio, m.Count
		if m.Recounted {
			r, n = m.RecountedRatio, m.RecountedPods
		}
		if want := toInt32(math.Ceil(r * float64(n))); m.Outcome == Scaled && m.Proposal != want {
			t.Errorf("%s: proposes %d, %v times %d is %d", m.Name, m.Proposal, r, n, want)
		}
		near := 1-m.ToleranceDown <= r && r <= 1+m.ToleranceUp
		if near != (m.Outcome == WithinTolerance) {
			t.Errorf("%s: outcome %v, ratio %v, tolerance -%v +%v", m.Name, m.Outcome, r, m.ToleranceDown, m.ToleranceUp)
		}
		if m.Outcome != Scaled && m.Proposal != in.Scale.SpecReplicas {
			t.Errorf("%s: outcome %v proposes %d, not the current %d", m.Name, m.Outcome, m.Proposal, in.Scale.SpecReplicas)
		}
	}
}

// orderless checks that the decision does not depend on the order of pods and samples.
func orderless(t *testing.T, in *Input, want *Decision) {
	t.Helper()
	slices.Reverse(in.Pods)
	read := in.ReadMetric
	in.ReadMetric = func(i int) Reading {
		r := read(i)
		r.Samples = slices.Clone(r.Samples)
		slices.Reverse(r.Samples)
		return r
	}
	if diff := cmp.Diff(want, Decide(in), same); diff != "" {
		t.Errorf("another order of pods gives another decision:\n%s", diff)
	}
}

// TestMemoryIsBounded checks that after a week the memory only has what fits into the windows.
func TestMemoryIsBounded(t *testing.T) {
	in := crowd(10)
	in.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	Default(in.Spec)
	in.Spec.Behavior.ScaleDown.Policies[0].PeriodSeconds = 600
	start := in.Now
	use := int64(0)
	in.ReadMetric = func(int) Reading {
		r := Reading{At: in.Now}
		for i := range in.Pods {
			r.Samples = append(r.Samples, PodSample{Pod: in.Pods[i].Name, Milli: use, At: in.Now, Window: 15 * time.Second})
		}
		return r
	}
	for i := range 7 * 24 * 60 * 4 {
		in.Now = start.Add(time.Duration(i) * 15 * time.Second)
		use = int64(100 + 500*(i/40%2)) // ten minutes of each
		d := Decide(in)
		done := d.Conclude(nil)
		in.Memory, in.Scale.SpecReplicas, in.Status = done.Memory, d.Desired, &done.Status
	}
	// There are 20 decisions in a window of 5 minutes, plus the one that replaces the oldest, and 40
	// decisions in 10 minutes.
	if got := len(in.Memory.Recommendations); got > 22 {
		t.Errorf("%d recommendations after a week, want at most 22", got)
	}
	if up, down := len(in.Memory.Ups), len(in.Memory.Downs); up == 0 || down == 0 || up > 3 || down > 42 {
		t.Errorf("%d changes up and %d down after a week, want some, and at most 3 and 42", up, down)
	}
}
