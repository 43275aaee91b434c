package evaluate

import (
	"context"
	"errors"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/cluster"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// village has one workload. All its pods have the same usage.
type village struct {
	pods  []string
	milli int64
	scale autoscaler.Scale
}

func (v village) Pods(namespace string, selector labels.Selector) (pods []autoscaler.PodInput, err error) {
	for _, name := range v.pods {
		if namespace == "shop" && selector.Matches(labels.Set{"app": "web"}) {
			pods = append(pods, autoscaler.PodInput{Name: name, Phase: cluster.Running, Ready: cluster.ReadyTrue, Started: noon.Add(-time.Hour),
				Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 100, Set: true}}}}})
		}
	}
	return pods, nil
}

func (v village) Readings(_ context.Context, _ string, _ labels.Selector, _ *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.PodInput) func(int) autoscaler.Reading {
	r := autoscaler.Reading{At: noon}
	for i := range pods {
		r.Samples = append(r.Samples, autoscaler.PodSample{Pod: pods[i].Name, Milli: v.milli, At: noon, Window: 15 * time.Second})
	}
	return func(int) autoscaler.Reading { return r }
}

func (village) Verdicts(string, *autoscalingv2.HorizontalPodAutoscalerSpec) func(int, string) (decisionreport.PodVerdict, bool) {
	return func(int, string) (decisionreport.PodVerdict, bool) { return decisionreport.PodVerdict{}, false }
}

func (v village) Get(_ context.Context, _ string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *scaleclient.Handle, error) {
	if ref.Name != "web" {
		return autoscaler.Scale{}, nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, ref.Name)
	}
	return v.scale, nil, nil
}

func spec(name string) *autoscalingv2.HorizontalPodAutoscalerSpec {
	s := &autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 10}
	autoscaler.Default(s) // 80% of the requested CPU
	return s
}

func evaluator(v village) *Evaluator {
	return &Evaluator{PodMetrics: v, Scales: v, Now: func() time.Time { return noon }, PodMetricsAt: func(at time.Time) (PodMetrics, error) {
		if noon.Sub(at) > 15*time.Minute {
			return nil, errors.New("memory reaches back 15m")
		}
		v.milli = 160 // at that time the usage was higher
		return v, nil
	}}
}

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

func TestEvaluate(t *testing.T) {
	v := village{pods: []string{"web-1", "web-2", "web-3", "web-4"}, milli: 40, scale: autoscaler.Scale{SpecReplicas: 4, StatusReplicas: 4, Selector: "app=web"}}
	f := func(name string, o Options, want int32, forgetful bool, notes int) {
		t.Helper()
		r, err := evaluator(v).Evaluate(t.Context(), web, spec("web"), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if d := r.Decision; d.Err != nil || d.Desired != want || r.NoMemory != forgetful || len(r.Notes) != notes {
			t.Errorf("%s: got %d replicas, %v, forgetful %v, notes %q; want %d, %v, %d notes", name, d.Desired, d.Err, r.NoMemory, r.Notes, want, forgetful, notes)
		}
	}
	six := int32(6)
	f("now: 40% of 80%", Options{}, 2, true, 0)
	f("earlier: 160%", Options{At: noon.Add(-5 * time.Minute)}, 8, true, 1)
	f("earlier, of a known count", Options{At: noon.Add(-5 * time.Minute), Replicas: &six}, 8, true, 0)
	f("another count above what may be", Options{Replicas: ptr(12)}, 10, true, 0)
	ambiguous := &autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "AmbiguousSelector"}}}
	f("although Kubernetes does not scale", Options{Status: ambiguous}, 2, true, 1)
	f("held by what is remembered", Options{Memory: &autoscaler.Memory{Recommendations: []autoscaler.ReplicaRecommendation{{Replicas: 3, At: noon.Add(-time.Minute)}}}}, 3, false, 0)
}

func ptr(n int32) *int32 { return &n }

// TestEvaluateWhatIsNotThere checks that a failed read is part of the decision, and that an unknown
// time is an error.
func TestEvaluateWhatIsNotThere(t *testing.T) {
	v := village{scale: autoscaler.Scale{SpecReplicas: 4, StatusReplicas: 4}}
	r, err := evaluator(v).Evaluate(t.Context(), web, spec("gone"), Options{})
	if err != nil || !apierrors.IsNotFound(r.Decision.Err) || r.Decision.Rescale {
		t.Errorf("no target: got %+v, %v; want a decision that says so", r, err)
	}
	r, err = evaluator(v).Evaluate(t.Context(), web, spec("web"), Options{})
	if err != nil || r.Decision.Err == nil || r.Decision.Rescale {
		t.Errorf("no selector: got %+v, %v; want a decision that says so", r, err)
	}
	for name, at := range map[string]time.Time{"too long ago": noon.Add(-time.Hour), "the future": noon.Add(time.Second)} {
		if r, err := evaluator(v).Evaluate(t.Context(), web, spec("web"), Options{At: at}); !errors.Is(err, ErrTimeUnknown) {
			t.Errorf("%s: got %+v, %v; want ErrTime", name, r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := evaluator(v).Evaluate(ctx, web, spec("web"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: got %+v, %v; want that", r, err)
	}
}
