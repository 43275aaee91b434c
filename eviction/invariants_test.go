package eviction

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestInvariants checks that the decisions about random nodes keep the invariants of all decisions.
func TestInvariants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := map[DecisionOutcome]int{}
	for range 400 {
		bytes := throw(random, 1500)
		for _, d := range holds(t, bytes) {
			outcomes[d.Outcome]++
		}
		if t.Failed() {
			t.Fatalf("of %x", bytes)
		}
	}
	// The random nodes must lead to all outcomes.
	for _, o := range []DecisionOutcome{OutcomeNoLayout, OutcomeNoSummary, OutcomeLocalLimit, OutcomeNoneInForce, OutcomeStale, OutcomeReclaim,
		OutcomeReclaimed, OutcomeEvict, OutcomeNoPods, OutcomeNoCandidate, OutcomeConditionOnly, OutcomeSettling} {
		if outcomes[o] == 0 {
			t.Errorf("no outcome %v in %v: make the nodes livelier", o, outcomes)
		}
	}
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(throw(random, 1200))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) { holds(t, bytes) })
}

func throw(random *rand.Rand, n int) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	return bytes
}

// holds decides round by round about the node that the bytes describe, and checks the invariants.
func holds(t *testing.T, bytes []byte) []*Decision {
	t.Helper()
	rounds, after := newRandom(bytes).rounds()
	untouched, untouchedAfter := newRandom(bytes).rounds()
	var list []*Decision
	var state DecisionState
	for i, in := range rounds {
		in.State, untouched[i].State = state, state
		before := clone(t, state)
		d := Decide(in)
		list = append(list, d)
		pure(t, in, untouched[i], d)
		follows(t, in, d)
		orderless(t, in, d)
		if len(d.Reclaim) > 0 {
			first := clone(t, d.Kills)
			end := d.AfterReclaim(after[i], nil)
			if !cmp.Equal(after[i], untouchedAfter[i]) || !cmp.Equal(first, d.Kills) || d.Outcome != OutcomeReclaim || !cmp.Equal(end, d.AfterReclaim(after[i], nil), same) {
				t.Error("AfterReclaim changed what it was given, or says otherwise the second time")
			}
			if (end.Outcome == OutcomeReclaimed) != (len(end.Reclaimed.Open) == 0) || len(end.Reclaim) > 0 {
				t.Errorf("outcome %v with %d thresholds open", end.Outcome, len(end.Reclaimed.Open))
			}
			follows(t, in, end)
			d = end
			list = append(list, d)
		}
		if !cmp.Equal(before, state) {
			t.Error("the state before was changed")
		}
		state = d.State
	}
	return list
}

var same = cmp.Options{
	cmp.AllowUnexported(Decision{}, RankedPod{}, ExceededLimit{}),
	cmpopts.EquateNaNs(),
	cmp.Comparer(func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }),
}

// clone returns a copy that shares no memory.
func clone[T any](t *testing.T, v T) (copied T) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &copied)
	}
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// pure checks that the same input gives the same decision, and that the input is not changed,
// including the internal form of its quantities.
func pure(t *testing.T, in, untouched *Input, d *Decision) {
	t.Helper()
	if diff := cmp.Diff(d, Decide(in), same); diff != "" {
		t.Errorf("a second decision differs:\n%s", diff)
	}
	a, b := *in, *untouched
	a.Summary, b.Summary = withoutStalls(a.Summary), withoutStalls(b.Summary) // the stalls may have NaNs
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the input was changed:\n%s", cmp.Diff(b, a, same))
	}
}

// withoutStalls returns a copy of s without the stalls of the node.
func withoutStalls(s *stats.Summary) *stats.Summary {
	if s == nil {
		return nil
	}
	c := *s
	c.Node.CPU, c.Node.IO = nil, nil
	if m := c.Node.Memory; m != nil {
		m := *m
		m.PSI = nil
		c.Node.Memory = &m
	}
	return &c
}

// follows checks that a decision follows from its own derivation.
func follows(t *testing.T, in *Input, d *Decision) {
	t.Helper()
	pods := map[PodIdentity]*corev1.Pod{}
	for _, pod := range in.Pods {
		pods[refOf(pod)] = pod
	}
	threshold := 0
	for _, k := range d.Kills {
		if pods[k.Pod] == nil || CriticalReason(pods[k.Pod]) != "" {
			t.Errorf("kills %v, critical or unknown", k.Pod)
		}
		if k.Condition != nil {
			threshold++
		}
		uid := pods[k.Pod].UID
		if b, ok := in.Blocked[uid]; in.Self != "" && uid == in.Self || ok && (b.Hard || !k.Hard) {
			t.Errorf("kills %v, which is to be passed over", k.Pod)
		}
		if k.Message == "" || k.Signal == "" {
			t.Errorf("kills %v without saying why", k.Pod)
		}
	}
	if threshold > 1 || threshold == 1 && len(d.Kills) > 1 {
		t.Errorf("kills %d pods, %d of them for a threshold", len(d.Kills), threshold)
	}
	if evicts := d.Outcome == OutcomeEvict || d.Outcome == OutcomeLocalLimit; evicts != (len(d.Kills) > 0) {
		t.Errorf("outcome %v with %d kills", d.Outcome, len(d.Kills))
	}
	if d.Outcome == OutcomeEvict {
		a := d.Thresholds[d.Acting]
		if !a.InForce || !a.Fresh || !a.SettledAt.IsZero() || string(a.Threshold.Signal) != d.Kills[0].Signal || d.Ranking[d.Victim].Pod != d.Kills[0].Pod {
			t.Errorf("evicts %v for %+v", d.Kills[0].Pod, a)
		}
		if !in.Settings.Parity && (a.Observation.Doubt != "" || d.Ranking[d.Victim].Doubt != "") {
			t.Errorf("evicts in doubt: %q, %q", a.Observation.Doubt, d.Ranking[d.Victim].Doubt)
		}
		for _, r := range d.Ranking[:d.Victim] {
			if r.Skipped == NotSkipped {
				t.Errorf("%v went before its turn: %v", d.Kills[0].Pod, r.Pod)
			}
		}
	}
	for i := range d.Ranking {
		if last := i == len(d.Ranking)-1; last != (d.Ranking[i].BeforeNextBy == KeyNone) {
			t.Errorf("place %d of %d is before the next by %v", i, len(d.Ranking), d.Ranking[i].BeforeNextBy)
		}
	}
	for i := range d.Thresholds {
		s := &d.Thresholds[i]
		if s.Met && s.Reclaiming || s.InForce && !s.Met && !s.Reclaiming || s.Met && s.Observation == nil {
			t.Errorf("threshold %+v contradicts itself", s)
		}
		if s.InForce && s.Remaining != 0 || s.Remaining > s.Threshold.Grace {
			t.Errorf("%v is in force %v, and has %v left", s.Threshold, s.InForce, s.Remaining)
		}
	}
}

// orderless checks that the ranking does not depend on the order of the pods.
func orderless(t *testing.T, in *Input, d *Decision) {
	t.Helper()
	reversed := *in
	reversed.Pods = slices.Clone(in.Pods)
	slices.Reverse(reversed.Pods)
	other := Decide(&reversed)
	if diff := cmp.Diff(d.Ranking, other.Ranking, same); diff != "" {
		t.Errorf("the ranking depends on the order of the pods:\n%s", diff)
	}
	if in.Summary == nil {
		return
	}
	for _, s := range append(Signals(), "cpu.pressure.some.avg10") {
		list := in.Rank(&Threshold{Signal: s}, d.Layout)
		order := excessOrder
		if s == PIDAvailable {
			order = processOrder
		}
		for i := range list {
			for k := i + 1; k < len(list); k++ {
				there, key := compareBy(order, &list[i], &list[k])
				back, _ := compareBy(order, &list[k], &list[i])
				if there >= 0 || back <= 0 || key == KeyNone {
					t.Errorf("%s: %v is before %v, but compares %d and %d by %v", s, list[i].Pod, list[k].Pod, there, back, key)
				}
			}
		}
	}
}

// TestDecisionsShareNothing makes several decisions on one input at once. The race detector reports
// any write.
func TestDecisionsShareNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		rounds, after := newRandom(throw(random, 1200)).rounds()
		want := Decide(rounds[0])
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				d := Decide(rounds[0])
				d.AfterReclaim(after[0], nil)
				if !cmp.Equal(want, d, same) {
					t.Error("decisions on one input differ")
				}
			})
		}
		wait.Wait()
	}
}

// FuzzSummary decides on any JSON: Decide must not panic, and must not evict a pod if a figure is
// in doubt.
func FuzzSummary(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 10 {
		rounds, _ := newRandom(throw(random, 1200)).rounds()
		n := &rounds[0].Summary.Node
		n.Memory.PSI, n.CPU, n.IO = nil, nil, nil // JSON has no NaN
		b, err := json.Marshal(rounds[0].Summary)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"node":{"memory":{"availableBytes":0,"workingSetBytes":0}},"pods":[{"podRef":{"uid":"u0"}}]}`))
	f.Add([]byte(`{"node":{"rlimit":{"maxpid":1,"curproc":9}},"pods":null}`))
	settings := &Settings{LocalLimits: true}
	var err error
	if settings.Thresholds, err = Parse(&ThresholdConfig{EvictionHard: map[string]string{
		"memory.available": "100.0%", "nodefs.available": "99.9%", "imagefs.inodesFree": "60%", "pid.available": "50", "allocatableMemory.available": "1Gi",
	}}); err != nil {
		f.Fatal(err)
	}
	pods := newRandom(throw(random, 600)).pods()
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &stats.Summary{}
		if json.Unmarshal(b, s) != nil {
			t.Skip()
		}
		in := &Input{Now: t0, Settings: settings, Pods: pods, Summary: s}
		d := Decide(in)
		follows(t, in, d)
		for i := range d.Thresholds {
			if o := d.Thresholds[i].Observation; o != nil && (o.Capacity <= 0 || o.Available < 0 || o.Available > o.Capacity) && d.Thresholds[i].Met {
				t.Errorf("met on an absurd figure: %+v", *o)
			}
		}
		follows(t, in, d.AfterReclaim(s, nil))
	})
}

// FuzzParse checks that an accepted threshold is valid, and that its text is parsed to the same
// threshold.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"100Mi", "10%", "0%", "100%", "100.0%", "-1", "1e1%", "0x1p3%", "NaN%", "inf%", "10%%", "1.5Gi", "1e99999999", "1e-99999999", "1e99999999999999999999", "5E", "5Ei", "1E3", "memory.pressure.some.avg10>20 for 30s until 10",
		"io.pressure.full.avg300>0.5", "cpu.pressure.some.avg60>99.9% for 1h", "memory.pressure.some.avg10>NaN", "memory.available>20"} {
		f.Add(s, s, "30s")
	}
	f.Fuzz(func(t *testing.T, value, reclaim, grace string) {
		c := &ThresholdConfig{EvictionSoft: map[string]string{"nodefs.available": value}, EvictionSoftGracePeriod: map[string]string{"nodefs.available": grace},
			EvictionMinimumReclaim: map[string]string{"nodefs.available": reclaim}}
		list, err := Parse(c)
		if err == nil {
			for i := range list {
				limit, goal := list[i].limitAndGoal(1 << 40)
				fraction := list[i].Value.Fraction
				if limit.Sign() < 0 || fraction < 0 || fraction > 1 || list[i].Grace < 0 {
					t.Errorf("%q for %q gives %v", value, grace, list[i])
				}
				if m := list[i].MinReclaim; m != nil && m.Fraction <= 1 && goal.Cmp(limit) < 0 {
					t.Errorf("a goal of %s below the limit of %s", goal.String(), limit.String())
				}
			}
		}
		p, err := ParsePressure(value)
		if err != nil {
			if !strings.Contains(err.Error(), "write it as") {
				t.Errorf("an error that does not help: %v", err)
			}
			return
		}
		if !p.Signal.Pressure() || p.Value.Stall <= 0 || p.Value.Stall >= 100 {
			t.Errorf("%q gives %+v", value, p)
		}
		again, err := ParsePressure(p.String())
		if err != nil || again.String() != p.String() {
			t.Errorf("%q writes itself %q, which gives %+v, %v", value, p, again, err)
		}
	})
}
