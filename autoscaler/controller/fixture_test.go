package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/podmetrics"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/background"
)

var _ PodMetrics = (*podmetrics.Reader)(nil)

// fixture is a cluster with workloads. The pods of a workload share its load, and requested
// replicas exist at once.
type fixture struct {
	mu       sync.Mutex
	replicas map[string]int32 // by name
	load     map[string]int64 // of all pods of a workload together, in millicores
	grown    map[string]growth
	blind    bool     // no metrics exist
	writes   []string // "web 3 to 5"
	refuse   error    // the error of a write that is not made
	hangs    error    // the error of a write that is made nevertheless
	confuse  bool     // makes Pods panic
	outside  []int64  // the values of outside metrics
	silent   error    // the error of a read
}

// growth is the time at which pods were added, and the number before.
type growth struct {
	from int32
	at   time.Time
}

func newFixture() *fixture {
	return &fixture{replicas: map[string]int32{}, load: map[string]int64{}, grown: map[string]growth{}}
}

func (w *fixture) set(name string, replicas int32, load int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas[name], w.load[name] = replicas, load
}

func (w *fixture) use(name string, load int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load[name] = load
}

// now changes the fixture under its lock.
func (w *fixture) now(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *fixture) count(name string) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replicas[name]
}

func (w *fixture) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// Get implements Scales.
func (w *fixture) Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *scaleclient.Handle, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent != nil {
		return autoscaler.Scale{}, nil, w.silent
	}
	n, ok := w.replicas[ref.Name]
	if !ok {
		return autoscaler.Scale{}, nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, ref.Name)
	}
	id, err := w.WorkloadID(ctx, namespace, ref)
	return autoscaler.Scale{SpecReplicas: n, StatusReplicas: n, Selector: "app=" + ref.Name}, &scaleclient.Handle{WorkloadID: id}, err
}

// WorkloadID implements Scales.
func (w *fixture) WorkloadID(_ context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (scaleclient.WorkloadID, error) {
	if ref.Kind != "Deployment" {
		return scaleclient.WorkloadID{}, errors.New("discovery is broken")
	}
	return scaleclient.WorkloadID{Namespace: namespace, Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Name: ref.Name}, nil
}

// Update implements Scales.
func (w *fixture) Update(_ context.Context, h *scaleclient.Handle, replicas int32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return w.refuse
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %d to %d", h.Name, w.replicas[h.Name], replicas))
	w.replicas[h.Name] = replicas
	return w.hangs
}

func (w *fixture) selected(sel labels.Selector) (name string) {
	for n := range w.replicas {
		if sel.Matches(labels.Set{"app": n}) {
			return n
		}
	}
	return ""
}

// Pods implements Metrics. The pods have been ready for a long time and request one core each.
func (w *fixture) Pods(_ string, sel labels.Selector) ([]autoscaler.PodInput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.confuse {
		panic("what pods?")
	}
	name, core := w.selected(sel), autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 1000, Set: true}}
	var pods []autoscaler.PodInput
	for i := range w.replicas[name] {
		started := time.Now().Add(-time.Hour)
		if g := w.grown[name]; !g.at.IsZero() && i >= g.from {
			started = g.at
		}
		pods = append(pods, autoscaler.PodInput{
			Name: fmt.Sprintf("%s-%02d", name, i), Labels: labels.Set{"app": name}, Phase: cluster.Running, Started: started,
			Ready: cluster.ReadyTrue, ReadySince: time.Now().Add(-time.Hour),
			Containers: []autoscaler.ContainerInput{{Name: "app", Requests: core}},
		})
	}
	return pods, nil
}

// Readings implements Metrics.
func (w *fixture) Readings(_ context.Context, _ string, sel labels.Selector, _ *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.PodInput) func(int) autoscaler.Reading {
	now := time.Now()
	return func(int) autoscaler.Reading {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.blind {
			return autoscaler.Reading{Err: errors.New("no metrics returned from resource metrics API")}
		}
		r := autoscaler.Reading{At: now, Values: w.outside}
		for _, p := range pods {
			r.Samples = append(r.Samples, autoscaler.PodSample{Pod: p.Name, Milli: w.load[w.selected(sel)] / int64(len(pods)), At: now, Window: 30 * time.Second})
		}
		return r
	}
}

// Verdicts implements Metrics.
func (*fixture) IsInMemory(m *autoscalingv2.MetricSpec) bool {
	return m.Type != autoscalingv2.ExternalMetricSourceType
}

func (*fixture) Verdicts(string, *autoscalingv2.HorizontalPodAutoscalerSpec) func(int, string) (decisionreport.PodVerdict, bool) {
	return func(int, string) (decisionreport.PodVerdict, bool) { return decisionreport.PodVerdict{}, false }
}

// scalers serves Autoscalers from the object tracker of client-go's fakes.
type scalers struct {
	fake    *ktesting.Fake
	tracker ktesting.ObjectTracker
}

func newScalers(t *testing.T) *scalers {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &scalers{fake: &ktesting.Fake{}, tracker: ktesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())}
	s.fake.AddReactor("*", "*", ktesting.ObjectReaction(s.tracker))
	s.fake.AddWatchReactor("*", func(a ktesting.Action) (bool, watch.Interface, error) {
		w, err := s.tracker.Watch(a.GetResource(), a.GetNamespace())
		return true, w, err
	})
	return s
}

// IsWatchListSemanticsUnSupported says to reflectors that the tracker does not stream lists.
func (*scalers) IsWatchListSemanticsUnSupported() bool { return true }

// Autoscalers implements Autoscalers.
func (s *scalers) Autoscalers(namespace string) v1alpha1.Interface {
	gv := v1alpha1.GroupVersion()
	return gentype.NewFakeClientWithList(s.fake, namespace, gv.WithResource(v1alpha1.Resource), gv.WithKind(v1alpha1.Kind),
		func() *v1alpha1.Autoscaler { return &v1alpha1.Autoscaler{} }, func() *v1alpha1.AutoscalerList { return &v1alpha1.AutoscalerList{} },
		func(dst, src *v1alpha1.AutoscalerList) { dst.ListMeta = src.ListMeta },
		func(l *v1alpha1.AutoscalerList) []*v1alpha1.Autoscaler { return gentype.ToPointerSlice(l.Items) },
		func(l *v1alpha1.AutoscalerList, items []*v1alpha1.Autoscaler) {
			l.Items = gentype.FromPointerSlice(items)
		})
}

// stage is a cluster with the replicas of weir that run in it.
type stage struct {
	t       *testing.T
	fixture *fixture
	client  *fake.Clientset
	scalers *scalers
	leader  atomic.Pointer[replica] // the leader; nil if there is none
	options Options
	logged  *observer.ObservedLogs
	log     *zap.Logger
}

// replica is one replica of weir.
type replica struct {
	*Controller
	watcher  *watcher.Watcher
	registry *prometheus.Registry
	stop     func()
}

// staged runs play in a synctest bubble.
func staged(t *testing.T, play func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		s := &stage{t: t, fixture: newFixture(), client: fake.NewClientset(), scalers: newScalers(t), logged: logged, log: zap.New(core), options: Options{Act: true}}
		play(s)
	})
}

// start starts another replica. When it returns, the replica has listed all objects and watches them:
// the tracker forgets what changes between the two.
func (s *stage) start() *replica { return s.startReplica(false) }

// lead starts a replica that leads from the beginning.
func (s *stage) lead() *replica { return s.startReplica(true) }

func (s *stage) startReplica(leads bool) *replica {
	s.t.Helper()
	r := &replica{registry: prometheus.NewRegistry()}
	o := s.options
	o.Client, o.Autoscalers, o.Scales, o.Metrics, o.Logger, o.Registerer = s.client, s.scalers, s.fixture, s.fixture, s.log, r.registry
	o.IsLeader = func() bool { return s.leader.Load() == r }
	w, err := watcher.New(watcher.Options{Client: s.client, Autoscalers: s.scalers, Logger: s.log})
	if err != nil {
		s.t.Fatal(err)
	}
	o.Watcher = w
	c, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Controller, r.watcher = c, w
	if leads {
		s.leader.Store(r)
	}
	endWatch, endRounds := background.Run(s.t, w.Run), background.Run(s.t, c.Run)
	r.stop = func() { endRounds(); endWatch() }
	synctest.Wait()
	return r
}

// pass lets time pass.
func (*stage) pass(d time.Duration) {
	time.Sleep(d) // the time of the bubble
	synctest.Wait()
}

// scaler creates an Autoscaler for the Deployment of the same name, with a target of half a core
// for each pod.
func (s *stage) scaler(name string, change func(*v1alpha1.Autoscaler)) {
	s.t.Helper()
	a := &v1alpha1.Autoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.Now()},
		Spec:       v1alpha1.AutoscalerSpec{HorizontalPodAutoscalerSpec: halfACore(name)},
	}
	if change != nil {
		change(a)
	}
	if err := s.scalers.tracker.Add(a); err != nil {
		s.t.Fatal(err)
	}
}

func halfACore(name string) autoscalingv2.HorizontalPodAutoscalerSpec {
	half := int32(50)
	return autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		MinReplicas:    new(int32(1)), MaxReplicas: 20,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &half},
		}}},
	}
}

// edit changes an Autoscaler's specification.
func (s *stage) edit(name string, change func(*v1alpha1.Autoscaler)) {
	s.t.Helper()
	scalers := s.scalers.Autoscalers("shop")
	a, err := scalers.Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	a.Generation++
	change(a)
	if err := s.scalers.tracker.Update(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), a, "shop"); err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes an Autoscaler.
func (s *stage) remove(name string) {
	s.t.Helper()
	if err := s.scalers.tracker.Delete(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), "shop", name); err != nil {
		s.t.Fatal(err)
	}
}

// status returns the status of an Autoscaler.
func (s *stage) status(name string) v1alpha1.AutoscalerStatus {
	s.t.Helper()
	a, err := s.scalers.Autoscalers("shop").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return a.Status
}

// condition returns "True: Reason" for a condition of a status, or "".
func condition(s *v1alpha1.AutoscalerStatus, kind autoscalingv2.HorizontalPodAutoscalerConditionType) string {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return string(c.Status) + ": " + c.Reason
		}
	}
	return ""
}

// hasCondition fails the test unless the status of an Autoscaler has the condition want: "True: Reason", or "".
func (s *stage) hasCondition(name string, kind autoscalingv2.HorizontalPodAutoscalerConditionType, want string) {
	s.t.Helper()
	status := s.status(name)
	if got := condition(&status, kind); got != want {
		s.t.Errorf("%s: got %s %q, want %q", name, kind, got, want)
	}
}

// events returns "Reason: message" of all Events, sorted.
func (s *stage) events() (list []string) {
	s.t.Helper()
	got, err := s.client.CoreV1().Events("shop").List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range got.Items {
		list = append(list, e.InvolvedObject.Name+" "+e.Reason+": "+e.Message)
	}
	slices.Sort(list)
	return list
}

// statusWrites returns the number of status writes.
func (s *stage) statusWrites() (n int) {
	for _, a := range s.scalers.fake.Actions() {
		if a.Matches("update", v1alpha1.Resource) {
			n++
		}
	}
	return n
}

func mustHandle(t *testing.T, s *stage) *scaleclient.Handle {
	t.Helper()
	_, h, err := s.fixture.Get(t.Context(), "shop", halfACore("web").ScaleTargetRef)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
