package autoscaler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/weir-metrics/weir/test/cmptest"
	"github.com/weir-metrics/weir/test/vectors"
)

// TestConformance compares every decision with that of Kubernetes' controller: see testdata/hpa.
func TestConformance(t *testing.T) {
	var ran, passed int
	eachVector(t, func(v *vector) {
		ran++
		if t.Run(v.ID, func(t *testing.T) {
			switch v.Family {
			case "replicas":
				checkReplicas(t, v)
			case "reconcile":
				checkReconcile(t, v)
			default:
				t.Fatalf("unknown family %q", v.Family)
			}
		}) {
			passed++
		}
	})
	if ran == 0 {
		t.Fatal("no vectors ran")
	}
	fmt.Printf("hpa: %d of %d vectors passed\n", passed, ran) // also printed without -v
}

// TestSpecifications compares Default and Validate with what an API server stored.
func TestSpecifications(t *testing.T) {
	specs := 0
	eachVector(t, func(v *vector) {
		if v.Family == "reconcile" && !v.APIValid {
			checkRefused(t, v)
			return
		}
		for i := range v.Steps {
			spec := v.Steps[i].Spec
			if spec == nil {
				continue
			}
			specs++
			if err := Validate(spec, *v.Config.settings()); err != nil {
				t.Errorf("%s step %d: Validate refuses what an API server stored: %v", v.ID, i, err)
			}
			filled := spec.DeepCopy()
			Default(filled)
			if !equality.Semantic.DeepEqual(spec, filled) {
				t.Errorf("%s step %d: Default changes what has its defaults:\n%s", v.ID, i, cmp.Diff(spec, filled))
			}
		}
	})
	if specs == 0 {
		t.Fatal("no specification was checked")
	}
}

// checkRefused checks that one of a vector's specifications is refused.
func checkRefused(t *testing.T, v *vector) {
	t.Helper()
	for i := range v.Steps {
		spec := v.Steps[i].Spec
		if spec == nil {
			continue
		}
		filled := spec.DeepCopy()
		Default(filled)
		if Validate(spec, *v.Config.settings()) != nil || !equality.Semantic.DeepEqual(spec, filled) {
			return
		}
	}
	t.Errorf("%s: Validate and Default find nothing wrong, an API server did", v.ID)
}

// eachVector calls f with every vector.
func eachVector(t testing.TB, f func(*vector)) {
	t.Helper()
	vectors.Each(t, "hpa", func(line []byte) error {
		v := &vector{}
		if err := json.Unmarshal(line, v); err != nil {
			return err
		}
		f(v)
		return nil
	})
}

// checkReplicas replays one call of the replica calculator.
func checkReplicas(t *testing.T, v *vector) {
	in := &Input{
		Now:      t0,
		Settings: v.Config.settings(),
		Object:   types.NamespacedName{Namespace: v.Namespace, Name: "hpa"},
		Spec:     &autoscalingv2.HorizontalPodAutoscalerSpec{Metrics: []autoscalingv2.MetricSpec{v.Call.spec()}},
		Scale:    Scale{SpecReplicas: v.Call.CurrentReplicas, StatusReplicas: v.Call.CurrentReplicas, Selector: v.PodSelector},
		Pods:     selected(v.Pods, v.Namespace, v.PodSelector),
	}
	if v.Faults.PodList {
		in.Pods, in.PodsErr = nil, errors.New("the pod list fails")
	}
	in.ReadMetric = func(i int) Reading { return v.Metrics.read(&in.Spec.Metrics[i]) }
	c := newCalculation(in)
	c.toleranceDown, c.toleranceUp = v.Call.Tolerances.ScaleDown, v.Call.Tolerances.ScaleUp
	var m MetricDecision
	c.fillMetric(&m, 0)

	if got := m.Err != nil; got != v.Expected.Error {
		t.Fatalf("error %v (%v), want %v", got, m.Err, v.Expected.Error)
	}
	if v.Expected.Error {
		return
	}
	if m.Proposal != v.Expected.Replicas {
		t.Errorf("replicas %d, want %d", m.Proposal, v.Expected.Replicas)
	}
	if m.Usage != v.Expected.Usage {
		t.Errorf("usage %d, want %d", m.Usage, v.Expected.Usage)
	}
	if u := v.Expected.Utilization; u != nil && m.Utilization != *u {
		t.Errorf("utilization %d, want %d", m.Utilization, *u)
	}
}

// checkReconcile replays a sequence of reconciliations of one autoscaler. The test is its API
// server.
func checkReconcile(t *testing.T, v *vector) {
	var (
		fixture vectorStep
		status  = v.InitialStatus.status()
		memory  Memory
		// generation changes with the specification. An initial status belongs to the first one.
		generation = int64(1)
	)
	if v.observesGeneration() && v.InitialStatus != nil {
		status.ObservedGeneration = new(generation)
	}
	for i := range v.Steps {
		step := &v.Steps[i]
		switch step.Action {
		case "delete":
			status, memory = autoscalingv2.HorizontalPodAutoscalerStatus{}, Memory{}
			continue
		case "restart":
			memory = Memory{}
			continue
		}
		if i > 0 && step.Spec != nil && !equality.Semantic.DeepEqual(step.Spec, fixture.Spec) {
			generation++
		}
		inherit(&fixture, step)
		r := play(v, &fixture, step, &status, generation, memory)
		r.compare(t, step)
		if t.Failed() {
			t.Fatalf("step %d, at %d", i, step.At)
		}
		memory = r.done.Memory
		if r.write == "written" {
			status = r.done.Status
		}
	}
}

// inherit sets the values that a step does not change.
func inherit(fixture, step *vectorStep) {
	if step.Spec != nil {
		fixture.Spec = step.Spec
	}
	if step.Target != nil {
		fixture.Target = step.Target
	}
	if step.OtherHPAs != nil {
		fixture.OtherHPAs = step.OtherHPAs
	}
	if step.Pods != nil {
		fixture.Pods = step.Pods
	}
	if step.Metrics != nil {
		fixture.Metrics = step.Metrics
	}
}

// played is the result of a step.
type played struct {
	d        *Decision
	done     Completion
	before   autoscalingv2.HorizontalPodAutoscalerStatus
	attempts int
	rescaled bool
	write    string
}

func play(v *vector, fixture, step *vectorStep, status *autoscalingv2.HorizontalPodAutoscalerStatus, generation int64, memory Memory) *played {
	in := &Input{
		Now:        at(step.At),
		Settings:   v.Config.settings(),
		Object:     types.NamespacedName{Namespace: v.Namespace, Name: v.Name},
		Spec:       fixture.Spec.DeepCopy(),
		Status:     status,
		Memory:     memory,
		Scale:      Scale{fixture.Target.SpecReplicas, fixture.Target.StatusReplicas, fixture.Target.Selector},
		Pods:       selected(*fixture.Pods, v.Namespace, fixture.Target.Selector),
		ReadMetric: func(i int) Reading { return fixture.Metrics.read(&fixture.Spec.Metrics[i]) },
	}
	if v.observesGeneration() {
		in.Generation = new(generation)
	}
	_, in.ScaleErr = schema.ParseGroupVersion(fixture.Spec.ScaleTargetRef.APIVersion)
	switch step.Faults.ScaleLookup {
	case "unknownKind", "noMappings", "getError":
		in.ScaleErr = errors.New(step.Faults.ScaleLookup)
	}
	if step.Faults.PodList {
		in.Pods, in.PodsErr = nil, errors.New("the pod list fails")
	}
	in.Overlapping = otherTargets(v, fixture)

	r := &played{before: *status.DeepCopy(), write: "unchanged"}
	r.d = Decide(in)
	answers := step.Faults.ScaleUpdate
	r.done = carryOut(r.d, actions{
		scale: func() error {
			r.attempts++
			if len(answers) > 0 {
				answer := answers[0]
				answers = answers[1:]
				if answer == "conflict" {
					return apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("conflict"))
				}
				return errors.New(answer)
			}
			r.rescaled = true
			return nil
		},
		refresh: func() error {
			if step.Faults.ScaleRefreshError {
				return errors.New("reading the scale fails")
			}
			return nil
		},
		status: func() error {
			if step.Faults.StatusUpdate {
				r.write = "failed"
				return errors.New("the status write fails")
			}
			r.write = "written"
			return nil
		},
	})
	return r
}

// actions are the writes that a decision can require.
type actions struct{ scale, refresh, status func() error }

// carryOut writes the count and the status as Kubernetes' controller does, with its Events in the
// same order.
func carryOut(d *Decision, a actions) Completion {
	var err error
	if d.Rescale {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := a.scale()
			if err != nil {
				_ = a.refresh()
			}
			return err
		})
	}
	done := d.Conclude(err)
	if equality.Semantic.DeepEqual(d.oldStatus, &done.Status) {
		return done
	}
	if unwritten := a.status(); unwritten != nil {
		at := len(done.Events)
		if d.progress == metricsFailed {
			at-- // Kubernetes writes the Event for the metrics last
		}
		done.Events = slices.Insert(slices.Clone(done.Events), at, Event{corev1.EventTypeWarning, "FailedUpdateStatus", unwritten.Error()})
		done.Err = errors.Join(done.Err, unwritten)
	}
	return done
}

// otherTargets returns the autoscalers that have a pod of the target.
func otherTargets(v *vector, fixture *vectorStep) []types.NamespacedName {
	mine, err := labels.Parse(fixture.Target.Selector)
	if err != nil {
		return nil
	}
	var list []types.NamespacedName
	matched := func(namespace, name, selector string) {
		theirs, err := labels.Parse(selector)
		if err != nil || namespace != v.Namespace {
			return
		}
		for i := range *fixture.Pods {
			p := &(*fixture.Pods)[i]
			if (p.Namespace == "" || p.Namespace == v.Namespace) && mine.Matches(labels.Set(p.Labels)) && theirs.Matches(labels.Set(p.Labels)) {
				list = append(list, types.NamespacedName{Namespace: namespace, Name: name})
				return
			}
		}
	}
	matched(v.Namespace, v.Name, fixture.Target.Selector)
	for _, o := range *fixture.OtherHPAs {
		matched(o.Namespace, o.Name, o.Selector)
	}
	return list
}

func (r *played) compare(t *testing.T, step *vectorStep) {
	t.Helper()
	want := &step.Expected
	if got := r.done.Err != nil; got != want.Error {
		t.Errorf("error %v (%v), want %v", got, r.done.Err, want.Error)
	}
	if r.rescaled != want.Rescaled {
		t.Errorf("rescaled %v, want %v", r.rescaled, want.Rescaled)
	}
	if r.attempts != want.ScaleUpdateAttempts {
		t.Errorf("%d attempts to scale, want %d", r.attempts, want.ScaleUpdateAttempts)
	}
	if got := r.done.Status.DesiredReplicas; got != want.DesiredReplicas {
		t.Errorf("desired %d, want %d", got, want.DesiredReplicas)
	}
	var events []vectorEvent
	for _, e := range r.done.Events {
		events = append(events, vectorEvent{e.Type, e.Reason})
	}
	cmptest.Equal(t, "events", want.Events, events, cmpopts.EquateEmpty())
	r.compareStatus(t, want)
	if got := r.write; got != want.StatusWrite &&
		!(want.StatusWrite == "messageOnly" && (got == "written" || got == "unchanged")) {
		t.Errorf("status write %s, want %s", got, want.StatusWrite)
	}
	r.compareInside(t, want)
}

func (r *played) compareStatus(t *testing.T, want *vectorOutcome) {
	t.Helper()
	expected, got := want.Status.status(), *r.done.Status.DeepCopy()
	got.ObservedGeneration = nil // vectors do not have it
	for i := range got.Conditions {
		got.Conditions[i].Message = ""
	}
	if !equality.Semantic.DeepEqual(expected, got) {
		t.Errorf("status (-want +got):\n%s", cmp.Diff(expected, got))
	}
}

// compareInside compares internal values of Kubernetes' controller. They are not part of the
// contract, but they show a difference before it has an effect.
func (r *played) compareInside(t *testing.T, want *vectorOutcome) {
	t.Helper()
	if got := r.d.RescaleReason; r.rescaled && got != want.Upstream.RescaleReason {
		t.Errorf("reason of the rescale %q, want %q", got, want.Upstream.RescaleReason)
	}
	for i, p := range want.Upstream.Proposals {
		if i >= len(r.d.Metrics) {
			t.Errorf("%d metrics computed, want %d", len(r.d.Metrics), len(want.Upstream.Proposals))
			break
		}
		if m := &r.d.Metrics[i]; (m.Err != nil) != p.Error || m.Proposal != p.Replicas {
			t.Errorf("metric %d proposes %d (%v), want %d (error %v)", i, m.Proposal, m.Err, p.Replicas, p.Error)
		}
	}
	var recommended, ups, downs [][2]int64
	for _, e := range r.done.Memory.Recommendations {
		recommended = append(recommended, [2]int64{int64(e.Replicas), int64(e.At.Sub(t0).Seconds())})
	}
	for _, e := range r.done.Memory.Ups {
		ups = append(ups, [2]int64{int64(e.Replicas), int64(e.At.Sub(t0).Seconds())})
	}
	for _, e := range r.done.Memory.Downs {
		downs = append(downs, [2]int64{int64(e.Replicas), int64(e.At.Sub(t0).Seconds())})
	}
	for _, c := range []struct {
		what      string
		got, want [][2]int64
	}{
		{"recommendations", recommended, want.Upstream.Recommendations},
		{"changes up", ups, want.Upstream.ScaleUpEvents},
		{"changes down", downs, want.Upstream.ScaleDownEvents},
	} {
		cmptest.Equal(t, c.what, c.want, c.got, cmpopts.EquateEmpty())
	}
}
