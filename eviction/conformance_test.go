package eviction

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestConformance compares every decision with the kubelet's: see testdata/eviction. It sets
// Settings.Parity; TestOnlyDoubtsDiffer checks what differs without it.
func TestConformance(t *testing.T) {
	for _, family := range []struct {
		name  string
		check func(*testing.T, *vector)
	}{
		{"parse", checkParse},
		{"rank", checkRank},
		{"sync", checkSync},
		{"admit", checkAdmit},
		{"notifier", checkNotifier},
	} {
		ran, passed, skipped := 0, 0, 0
		eachVector(t, family.name, func(v *vector) {
			if _, ok := v.Config.FeatureGates["KubeletSeparateDiskGC"]; ok {
				skipped++ // the gate has been on since 1.31
				return
			}
			ran++
			if t.Run(v.ID, func(t *testing.T) { family.check(t, v) }) {
				passed++
			}
		})
		if ran == 0 {
			t.Errorf("no vectors of family %s", family.name)
		}
		fmt.Printf("eviction %s: %d of %d vectors passed, %d need another feature gate\n", family.name, passed, ran, skipped)
	}
}

func checkParse(t *testing.T, v *vector) {
	thresholds, err := Parse(&v.Config.ThresholdConfig)
	if got := err != nil; got != v.Expect.Error {
		t.Fatalf("error %v (%v), want %v", got, err, v.Expect.Error)
	}
	got := make([]vectorThreshold, len(thresholds))
	for i := range thresholds {
		got[i] = written(&thresholds[i])
		got[i].Operator = "LessThan"
		if m := thresholds[i].MinReclaim; m != nil {
			got[i].MinReclaim = new(writtenValue(m))
		}
	}
	cmptest.Equal(t, "thresholds", v.Expect.Thresholds, got, sorted, cmpopts.EquateEmpty())
}

// written returns a threshold in the form of the vectors.
func written(t *Threshold) vectorThreshold {
	return vectorThreshold{Signal: t.Signal, Value: writtenValue(&t.Value), GracePeriodSeconds: t.Grace.Seconds()}
}

func writtenValue(v *ThresholdValue) vectorValue {
	if v.Quantity == nil {
		return vectorValue{Percentage: new(float64(v.Fraction))}
	}
	q := v.Quantity.DeepCopy() // AsDec changes the quantity
	exact := q.AsDec().String()
	if strings.Contains(exact, ".") {
		exact = strings.TrimRight(strings.TrimRight(exact, "0"), ".")
	}
	return vectorValue{Quantity: v.Quantity.String(), Exact: exact}
}

var sorted = cmpopts.SortSlices(func(a, b vectorThreshold) bool { return fmt.Sprint(a.key()) < fmt.Sprint(b.key()) })

func (t vectorThreshold) key() string {
	fraction := 0.0
	if p := t.Value.Percentage; p != nil {
		fraction = *p
	}
	return fmt.Sprint(t.Signal, t.GracePeriodSeconds, t.Value.Exact, fraction)
}

func checkRank(t *testing.T, v *vector) {
	in := &Input{Now: t0, Settings: &Settings{Parity: true}, Pods: v.Pods, Summary: &stats.Summary{Pods: v.Stats}}
	var got []string
	for _, r := range in.Rank(&Threshold{Signal: v.Signal}, DiskLayout(v.Layout)) {
		got = append(got, r.Pod.Name)
	}
	groups := v.Expect.Groups
	if groups == nil {
		for _, name := range v.Expect.Order {
			groups = append(groups, []string{name})
		}
	}
	rest := got
	for _, group := range groups {
		if len(rest) < len(group) {
			break
		}
		head := slices.Sorted(slices.Values(rest[:len(group)]))
		if !slices.Equal(head, slices.Sorted(slices.Values(group))) {
			t.Fatalf("order %v, want %v", got, groups)
		}
		rest = rest[len(group):]
	}
	if len(rest) != 0 || len(got) != len(v.Pods) {
		t.Errorf("order %v, want %v", got, groups)
	}
}

func checkAdmit(t *testing.T, v *vector) {
	a := Admit(v.Pod, v.NodeConditions)
	if a.Admit != v.Expect.Admit || a.Reason != v.Expect.Reason || a.Message != v.Expect.Message {
		t.Errorf("got %+v, want %v %q %q", a, v.Expect.Admit, v.Expect.Reason, v.Expect.Message)
	}
}

func checkNotifier(t *testing.T, v *vector) {
	config := ThresholdConfig{EvictionHard: map[string]string{string(v.Threshold.Signal): v.Threshold.Value}}
	list, err := Parse(&config)
	if err != nil || len(list) != 1 {
		t.Fatalf("parse the threshold: %v, %v", list, err)
	}
	threshold := list[0]
	threshold.Grace = at(v.Threshold.GracePeriodSeconds).Sub(t0)
	if got := kubeletDescription(&threshold); got != v.Expect.Description {
		t.Errorf("description %q, want %q", got, v.Expect.Description)
	}
	current := false // whether a figure is registered with the kernel
	for i := range v.Steps {
		step := &v.Steps[i]
		n, err := threshold.CgroupThreshold(&step.Stats.Summary, Cgroups{Mount: v.Cgroups.MemoryMount, Pods: v.Cgroups.PodRoot})
		if got := err != nil || step.RegisterError; got != step.Expect.Error {
			t.Fatalf("step %d: error %v (%v), want %v", i, got, err, step.Expect.Error)
		}
		if got := err == nil && current; got != step.Expect.StopCurrent {
			t.Errorf("step %d: stop %v, want %v", i, got, step.Expect.StopCurrent)
		}
		want := step.Expect.Register
		if (want != nil) != (err == nil) {
			t.Fatalf("step %d: registers %v, want %v", i, err == nil, want != nil)
		}
		if want != nil && (n.Path != want.Path || n.Attribute != want.Attribute || n.Bytes != want.Threshold) {
			t.Errorf("step %d: %+v, want %+v", i, n, *want)
		}
		current = current || err == nil && !step.RegisterError
	}
}

// checkSync replays a sequence of decisions about one node.
func checkSync(t *testing.T, v *vector) {
	play(t, v, true, func(i int, d *Decision, got vectorAction) bool {
		v.Steps[i].compare(t, d, got)
		if t.Failed() {
			t.Fatalf("step %d, at %v", i, d.At.Sub(t0))
		}
		return true
	})
}

// play calls f with each decision of a vector and its result, until f returns false.
func play(t *testing.T, v *vector, parity bool, f func(int, *Decision, vectorAction) bool) {
	t.Helper()
	var (
		settings = v.settings(t, parity)
		state    DecisionState
		now      = t0
	)
	pods := map[string]*corev1.Pod{}
	for _, pod := range v.Pods {
		pods[pod.Name] = pod
	}
	for i := range v.Steps {
		step := &v.Steps[i]
		now = now.Add(time.Duration(step.AdvanceSeconds * float64(time.Second)))
		in := &Input{Now: now, Settings: settings, Layout: DiskLayout(v.Layout), State: state}
		for _, name := range step.ActivePods {
			in.Pods = append(in.Pods, pods[name])
		}
		switch step.LayoutError {
		case "imageFs":
			in.LayoutErr = errVector
		case "containerFs":
			in.Layout.DedicatedContainerFs = false // like a kubelet that does not know about it
		}
		if step.StatsError {
			in.SummaryErr = errVector
		} else {
			in.Summary = &step.Stats.Summary
		}
		d := Decide(in)
		got := vectorAction{GC: d.Reclaim}
		if d.Acting >= 0 {
			got.AttemptedReclaim = d.Thresholds[d.Acting].Threshold.Signal.Resource()
		}
		if len(d.Reclaim) > 0 {
			d = d.AfterReclaim(collect(step, d.Reclaim))
		}
		for _, k := range d.Kills {
			if k.Condition != nil && (k.Condition.Type != corev1.DisruptionTarget || k.Condition.Status != corev1.ConditionTrue ||
				k.Condition.Reason != corev1.PodReasonTerminationByKubelet || k.Condition.Message != k.Message) {
				t.Errorf("condition %+v of message %q", k.Condition, k.Message)
			}
			got.Kills = append(got.Kills, vectorKill{k.Pod.Name, k.Signal, k.GraceSeconds, k.Message, k.Condition != nil, k.Annotations})
		}
		if !f(i, d, got) {
			return
		}
		state = d.State
	}
}

// TestOnlyDoubtsDiffer replays vectors without Parity. The decisions are the same until the first
// doubt about an existing figure. If a later decision differs, it must have a doubt.
func TestOnlyDoubtsDiffer(t *testing.T) {
	alike, doubted := 0, 0
	eachVector(t, "sync", func(v *vector) {
		if _, ok := v.Config.FeatureGates["KubeletSeparateDiskGC"]; ok {
			return
		}
		var kubelets []*Decision
		play(t, v, true, func(_ int, d *Decision, _ vectorAction) bool {
			kubelets = append(kubelets, d)
			return true
		})
		differs := false
		play(t, v, false, func(i int, d *Decision, got vectorAction) bool {
			for _, k := range d.Kills {
				for _, doubt := range doubts(d) {
					if doubt.pod == k.Pod || doubt.pod == (PodIdentity{}) && string(doubt.signal) == k.Signal {
						t.Errorf("%s step %d: evicts %v for %s, which it doubts: %s", v.ID, i, k.Pod, k.Signal, doubt.reason)
					}
				}
			}
			if cmp.Equal(kubelets[i].Kills, d.Kills, cmpopts.EquateEmpty()) && cmp.Equal(kubelets[i].State, d.State, cmpopts.EquateEmpty()) {
				return true
			}
			differs = true
			if len(doubts(d)) == 0 {
				t.Errorf("%s step %d: differs from the kubelet without a doubt", v.ID, i)
			}
			return false
		})
		if differs {
			doubted++
		} else {
			alike++
		}
	})
	t.Logf("%d vectors go alike without Parity, %d differ by a doubt", alike, doubted)
	if alike < 300 || doubted == 0 {
		t.Errorf("%d vectors go alike without Parity, %d differ: expected most and some", alike, doubted)
	}
}

var errVector = errors.New("the vector wants an error")

// collect simulates the collections, and returns the summary after them.
func collect(step *vectorStep, collections []Collection) (*stats.Summary, error) {
	if step.GC.StatsError {
		return nil, errVector
	}
	s := step.Stats.Summary
	for _, c := range collections {
		result := step.GC.Container
		if c == UnusedImages {
			result = step.GC.Image
		}
		if result != nil && result.Node != nil {
			s.Node = result.Node.NodeStats
		}
	}
	return &s, nil
}

func (step *vectorStep) compare(t *testing.T, d *Decision, got vectorAction) {
	t.Helper()
	want := &step.Expect
	if failed := d.Outcome == OutcomeNoLayout; failed != want.Error {
		t.Errorf("error %v (%v), want %v", failed, d.Err, want.Error)
	}
	cmptest.Equal(t, "conditions", want.NodeConditions, d.Pressures(), cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b corev1.NodeConditionType) bool { return a < b }))
	var met []vectorThreshold
	for i := range d.State.Thresholds {
		if s := &d.State.Thresholds[i]; s.InForce {
			met = append(met, written(&s.Threshold))
		}
	}
	cmptest.Equal(t, "thresholds in force", asSet(want.ThresholdsMet), asSet(met), sorted, cmpopts.EquateEmpty())
	if d.RefreshNotifiers != want.NotifierRefresh {
		t.Errorf("refreshes notifiers %v, want %v", d.RefreshNotifiers, want.NotifierRefresh)
	}
	allowed := want.ActionAnyOf
	if want.Action != nil {
		allowed = []vectorAction{*want.Action}
	}
	diff := ""
	if !slices.ContainsFunc(allowed, func(a vectorAction) bool {
		diff = cmp.Diff(a, got, cmpopts.EquateEmpty())
		return diff == ""
	}) {
		t.Errorf("action, outcome %v, is none of %d allowed; the last (-want +got):\n%s", d.Outcome, len(allowed), diff)
	}
	step.compareInside(t, d)
}

// compareInside compares internal values of the kubelet. They are not part of the contract, but
// they show a difference before it has an effect.
func (step *vectorStep) compareInside(t *testing.T, d *Decision) {
	t.Helper()
	var since0 []vectorThreshold
	for i := range d.State.Thresholds {
		s := &d.State.Thresholds[i]
		w := written(&s.Threshold)
		w.At = since(s.Since)
		since0 = append(since0, w)
	}
	cmptest.Equal(t, "first observed", asSet(step.Expect.State.FirstObservedAt), asSet(since0), sorted, cmpopts.EquateEmpty())
	last := map[corev1.NodeConditionType]*float64{}
	for _, c := range d.State.Conditions {
		last[c.Type] = since(c.MetAt)
	}
	cmptest.Equal(t, "conditions last observed", step.Expect.State.LastObservedAt, last, cmpopts.EquateEmpty())
	if d.Observations == nil {
		return // the stored values belong to an earlier call
	}
	if got, want := len(d.Observations), len(step.Expect.Observations); got != want {
		t.Errorf("%d observations, want %d", got, want)
	}
	for _, o := range d.Observations {
		want, ok := step.Expect.Observations[o.Signal]
		if !ok || o.Available != want.Available || o.Capacity != want.Capacity || !cmp.Equal(since(o.Time), want.Time) {
			t.Errorf("observation %+v, want %+v", o, want)
		}
	}
}

func asSet(list []vectorThreshold) []vectorThreshold {
	seen := map[string]bool{}
	var set []vectorThreshold
	for _, t := range list {
		if !seen[t.key()] {
			seen[t.key()] = true
			set = append(set, t)
		}
	}
	return set
}

// kubeletDescription returns the kubelet's name for the notifier of a threshold.
func kubeletDescription(t *Threshold) string {
	s := t.Kind() + " "
	if t.Signal == AllocatableMemoryAvailable {
		s += "allocatable "
	}
	return s + "memory eviction threshold"
}
