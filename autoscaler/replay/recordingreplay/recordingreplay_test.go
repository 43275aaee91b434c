package recordingreplay

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

var began = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

// used has the served cores of the container app, by pod.
type used map[metric.PodRef]float64

func (u used) Pod(ref metric.PodRef) (*metric.Sample, []*metric.Sample) {
	cores, ok := u[ref]
	if !ok {
		return nil, nil
	}
	pod, container := &metric.Sample{}, &metric.Sample{}
	pod.Values.Set(metric.NetworkRxRate, cores*100)
	container.Entity.Name = "app"
	container.Values.Set(metric.CPUUsageRate, cores*1e9)
	container.Values.Set(metric.MemoryWorkingSet, 64<<20)
	return pod, []*metric.Sample{container}
}

// pod returns a pod of shop. started and ready are in seconds after the beginning; a negative ready
// means that it is not ready yet.
func pod(name string, started, ready int) *cluster.Pod {
	p := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}, UID: metric.PodUID("uid-" + name), Phase: cluster.Running,
		Started: at(started), Ready: cluster.ReadyFalse, Labels: map[string]string{"app": strings.Split(name, "-")[0]},
		Containers: []cluster.Container{{Name: "app", State: cluster.StateRunning}},
	}
	p.Containers[0].Spec.Set(metric.CPURequest, 250e6)
	p.Containers[0].Spec.Set(metric.CPULimit, 1e9)
	if ready >= 0 {
		p.Ready, p.ReadySince = cluster.ReadyTrue, at(ready)
	}
	return p
}

func facts(pods ...*cluster.Pod) *cluster.Facts {
	return (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: began, Pods: pods})
}

const a, b, c = "web-5d4f8c7b9-aaaaa", "web-5d4f8c7b9-bbbbb", "web-5d4f8c7b9-ccccc"

func ref(name string) metric.PodRef {
	return metric.PodRef{Namespace: "shop", Name: metric.PodName(name)}
}

func collect(t *testing.T, o Options) *RecordingCollector {
	t.Helper()
	o.Namespace, o.Kind, o.Name = "shop", "Deployment", "web"
	collector, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return collector
}

func value(t *testing.T, name string, s replay.Series, seconds int, want float64) {
	t.Helper()
	got, ok := s.At(at(seconds), time.Minute)
	if !ok || math.Abs(got-want) > 1e-9 {
		t.Errorf("%s at %d s: got %v, %v, want %v", name, seconds, got, ok, want)
	}
}

func TestTrace(t *testing.T) {
	k := collect(t, Options{Named: []string{"network_receive_bytes_per_second"}})
	old := []*cluster.Pod{pod(a, -600, 0), pod(b, -600, 0), pod("other-5d4f8c7b9-ddddd", -600, 0)}
	all := used{ref(a): 0.5, ref(b): 0.25, ref("other-5d4f8c7b9-ddddd"): 7}
	k.AddRound(at(0), facts(old...), all)
	k.AddRound(at(3), facts(old...), used{}) // a second round in the same step is ignored
	// A new pod is first not ready, then ready but not measured, then measured.
	k.AddRound(at(15), facts(append(old, pod(c, 5, -1))...), used{ref(a): 0.5, ref(b): 0.25, ref(c): 0.9})
	k.AddRound(at(30), facts(append(old, pod(c, 5, 25))...), used{ref(a): 0.3, ref(b): 0.2})
	k.AddRound(at(45), facts(append(old, pod(c, 5, 25))...), used{ref(a): 0.3, ref(b): 0.2, ref(c): 0.25})
	// One measured pod of three is too few, and a pod that is being deleted does not count.
	k.AddRound(at(60), facts(append(old, pod(c, 5, 25))...), used{ref(a): 0.3})
	leaving := pod(c, 5, 25)
	leaving.Deleted = at(70)
	k.AddRound(at(75), facts(append(old, leaving)...), all)
	k.AddRound(at(90), nil, all) // the API server does not answer
	trace, err := k.Trace()
	if err != nil {
		t.Fatal(err)
	}
	app := trace.Containers[0]
	if len(trace.Containers) != 1 || app.Name != "app" || app.Requests.CPU != (autoscaler.MilliQuantity{Milli: 250, Set: true}) || app.Requests.Memory.Set || app.Limits.CPU.Milli != 1000 {
		t.Errorf("got containers %+v", trace.Containers)
	}
	for seconds, want := range map[int]float64{0: 0.75, 15: 0.75, 30: 0.75, 45: 0.75, 75: 0.75} {
		value(t, "cpu", app.CPU, seconds, want)
	}
	if n := len(app.CPU); n != 5 {
		t.Errorf("cpu has %d points, want 5: none at 60 s", n)
	}
	value(t, "memory", app.Memory, 30, 3*64<<20)
	value(t, "network", trace.Named["network_receive_bytes_per_second"], 0, 75)
	for seconds, want := range map[int]float64{0: 2, 15: 3, 60: 3, 75: 2} {
		value(t, "replicas", trace.Replicas, seconds, want)
	}
	if want := (replay.Startup{Median: 20 * time.Second, Pods: 1}); trace.Startup != want {
		t.Errorf("got startup %v, want %v", trace.Startup, want)
	}
	if !trace.From.Equal(at(0)) || !trace.To.Equal(at(90)) {
		t.Errorf("got %s to %s", trace.From, trace.To)
	}
}

// TestScale checks that a recorded target takes precedence over the names and the number of pods.
func TestScale(t *testing.T) {
	k := collect(t, Options{From: at(15), To: at(60)})
	pods := facts(pod("strange-1", -600, 0), pod(a, -600, 0))
	use := used{ref("strange-1"): 0.5, ref(a): 1}
	k.AddTarget(&recording.ScaleTarget{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", Replicas: 4, Selector: "app=strange"}, at(16))
	k.AddTarget(&recording.ScaleTarget{Group: "apps", Resource: "statefulsets", Namespace: "shop", Name: "web", Replicas: 9}, at(17))
	k.AddRound(at(0), pods, use)
	k.AddRound(at(30), pods, use)
	k.AddRound(at(60), pods, use)
	trace, err := k.Trace()
	if err != nil {
		t.Fatal(err)
	}
	value(t, "replicas", trace.Replicas, 30, 4)
	value(t, "cpu", trace.Containers[0].CPU, 30, 0.5)
	if n := len(trace.Containers[0].CPU); n != 1 {
		t.Errorf("cpu has %d points, want the one within the bounds", n)
	}
}

// TestScaleFromBefore checks that a target that was recorded before the trace begins is used in it.
func TestScaleFromBefore(t *testing.T) {
	k := collect(t, Options{From: at(15)})
	k.AddTarget(&recording.ScaleTarget{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web", Replicas: 4}, at(0))
	k.AddRound(at(30), facts(pod(a, -600, 0)), used{ref(a): 1})
	trace, err := k.Trace()
	if err != nil {
		t.Fatal(err)
	}
	value(t, "replicas", trace.Replicas, 30, 4)
}

// TestRoundsFarApart checks that rounds with a minute between them give no gaps.
func TestRoundsFarApart(t *testing.T) {
	k := collect(t, Options{})
	for minute := range 5 {
		k.AddRound(at(60*minute), facts(pod(a, -600, 0)), used{ref(a): 1})
	}
	trace, err := k.Trace()
	if err != nil {
		t.Fatal(err)
	}
	if want := time.Minute; trace.Step != want {
		t.Errorf("points are %v apart, want %v", trace.Step, want)
	}
}

// TestContainersThatComeAndGo checks a rollout that replaces a container: it gives no gap, and a
// container that exists for a short time is omitted.
func TestContainersThatComeAndGo(t *testing.T) {
	with := func(p *cluster.Pod, name string) *cluster.Pod {
		p.Containers = append(p.Containers, cluster.Container{Name: name, State: cluster.StateRunning})
		return p
	}
	k := collect(t, Options{})
	use := used{ref(a): 1, ref(b): 1}
	for n := range 10 {
		first, second := pod(a, -600, 0), pod(b, -600, 0)
		if n == 4 {
			with(second, "debug")
		}
		if n >= 5 {
			first.Containers[0].Name = "next"
		}
		k.AddRound(at(15*n), facts(first, second), use)
	}
	trace, err := k.Trace()
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Containers) != 2 || trace.Containers[0].Name != "app" || trace.Containers[1].Name != "next" {
		t.Fatalf("got containers %+v, want app and next", trace.Containers)
	}
	// The fake measures app in both pods, although only one of them has it at the end.
	value(t, "app", trace.Containers[0].CPU, 0, 2)
	value(t, "next", trace.Containers[1].CPU, 0, 0)
	if want := []string{"container debug was in pods for 10% of the time: it counts as temporary and is left out"}; !slices.Equal(trace.Notes, want) {
		t.Errorf("got notes %q, want %q", trace.Notes, want)
	}
}

func TestMistakes(t *testing.T) {
	if _, err := New(Options{Kind: "Deployment", Name: "web", Named: []string{"queue"}}); err == nil || !strings.Contains(err.Error(), "queue is not one of them") {
		t.Errorf("a metric that weir does not know: got %v", err)
	}
	k := collect(t, Options{})
	if _, err := k.Trace(); err == nil || !strings.Contains(err.Error(), "no round in that time") {
		t.Errorf("nothing: got %v", err)
	}
	k = collect(t, Options{Selector: labels.SelectorFromSet(labels.Set{"app": "none"})})
	k.AddRound(at(0), facts(pod(a, -600, 0)), used{})
	if _, err := k.Trace(); err == nil || !strings.Contains(err.Error(), "no pods of Deployment/web in namespace shop") {
		t.Errorf("no pods: got %v", err)
	}
}
