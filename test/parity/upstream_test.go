package parity

import (
	"context"
	"fmt"
	"io"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/util/selectors"
	"k8s.io/kubernetes/pkg/features"

	"github.com/weir-metrics/weir/autoscaler"
)

// upstream is Kubernetes' own controller, with APIs that answer from a test
// input.
type upstream struct {
	controller *podautoscaler.HorizontalController
	client     metrics.MetricsClient
	hpas, pods cache.Indexer
	apis       *apis
	events     *events
	selectors  selectorTracker
	known      []selectors.Key     // the autoscalers in selectors
	gates      autoscaler.Settings // the feature gates that were set last, and nothing else
}

// selectorTracker has the selectors of all autoscalers' targets.
type selectorTracker interface {
	PutIfAbsent(namespace string, key selectors.Key, selector labels.Selector) bool
	Delete(namespace string, key selectors.Key)
}

// newUpstream returns a controller. Its background work ends with ctx.
func newUpstream(ctx context.Context) *upstream {
	checkLayouts()
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	utilruntime.ErrorHandlers = nil // these log, and pause between errors
	retry.DefaultRetry.Duration = 0 // so that the clock does not move in a step, as in weir's

	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	hpas, pods := factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods()
	u := &upstream{apis: &apis{}, events: &events{}, hpas: hpas.Informer().GetIndexer(), pods: pods.Informer().GetIndexer()}
	u.client = metrics.NewRESTMetricsClient(resourceAPI{apis: u.apis}, customAPI{u.apis}, externalAPI{u.apis})
	u.controller = podautoscaler.NewHorizontalController(ctx, fake.NewClientset().CoreV1(),
		scaleAPI{apis: u.apis}, statusAPI{apis: u.apis}, mapper{apis: u.apis}, u.client,
		hpas, podInformer{pods, u.apis}, time.Hour, time.Minute, 0.1, time.Minute, time.Minute)
	*field[record.EventRecorder](u.controller, "eventRecorder") = u.events
	u.selectors = dynamic[selectorTracker](u.controller, "selectorTracker")
	queue := dynamic[interface{ ShutDown() }](u.controller, "queue")
	context.AfterFunc(ctx, queue.ShutDown)
	return u
}

// configure sets flags and feature gates as if the controller had been started
// with them.
func (u *upstream) configure(c config) {
	*field[float64](u.controller, "tolerance") = c.Tolerance
	*field[time.Duration](u.controller, "downscaleStabilisationWindow") = c.DownscaleStabilization
	*field[*podautoscaler.ReplicaCalculator](u.controller, "replicaCalc") = u.calculator(c)
	u.setGates(c.Settings)
}

func (u *upstream) calculator(c config) *podautoscaler.ReplicaCalculator {
	return podautoscaler.NewReplicaCalculator(u.client, listerOver(u.pods, u.apis), c.CPUInitialization, c.InitialReadinessDelay)
}

// setGates sets the feature gates if they are different, because setting them
// takes time.
func (u *upstream) setGates(s autoscaler.Settings) {
	s = autoscaler.Settings{ScaleToZero: s.ScaleToZero, PodLevelResources: s.PodLevelResources}
	if u.gates == s {
		return
	}
	u.gates = s
	err := feature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(features.HPAScaleToZero):    s.ScaleToZero,
		string(features.PodLevelResources): s.PodLevelResources,
		// These need PodLevelResources; the autoscaler does not use them.
		string(features.InPlacePodLevelResourcesVerticalScaling): false,
		string(features.PodLevelResourceManagers):                false,
		string(features.PodLevelResourcesFixDefaulting):          false,
		string(features.PodLevelResourcesFixKubeletQOSClass):     s.PodLevelResources, // for TestQoSClassIsKubernetes
	})
	if err != nil {
		panic(fmt.Sprintf("set feature gates: %v", err))
	}
}

// see sets the test input for the APIs and caches.
func (u *upstream) see(w *testInput) {
	u.apis.testInput = w
	objects := make([]any, len(w.Pods))
	for i, pod := range w.Pods {
		objects[i] = pod
	}
	if err := u.pods.Replace(objects, ""); err != nil {
		panic(err)
	}
}

// forget resets the controller to its state at the start.
func (u *upstream) forget() {
	if err := u.hpas.Replace(nil, ""); err != nil {
		panic(err)
	}
	if deleted, err := reconcileKey(u.controller, context.Background(), namespace+"/"+name); !deleted || err != nil {
		panic(fmt.Sprintf("the controller did not notice a deletion: %v", err))
	}
	u.know()
}

// know sets which autoscalers the controller knows: self, as its informer's handler does, and others.
func (u *upstream) know(others ...otherTarget) {
	for _, key := range u.known {
		u.selectors.Delete(key.Namespace, key)
	}
	u.known = nil
	put := func(namespace, name string, selector labels.Selector) {
		key := selectors.Key{Namespace: namespace, Name: name}
		u.selectors.PutIfAbsent(namespace, key, selector)
		u.known = append(u.known, key)
	}
	put(namespace, name, labels.Nothing())
	for _, other := range others {
		put(other.Namespace, other.Name, parse(other.Selector))
	}
}

// outcome is what can be observed of a reconcile on either side.
type outcome struct {
	Err     error
	Updates []int32 // numbers of replicas that it wrote to the scale, or tried to write
	// Status is the status that it wrote or tried to write, or nil.
	Status *autoscalingv2.HorizontalPodAutoscalerStatus
	Events []autoscaler.Event
	Memory autoscaler.Memory
}

// reconcile runs one reconcile. generation is that of the specification.
func (u *upstream) reconcile(s *step, generation int64, status *autoscalingv2.HorizontalPodAutoscalerStatus) outcome {
	u.see(&s.Input)
	u.apis.step, u.apis.updates, u.apis.status = s, nil, nil
	u.events.list = nil
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: generation},
		Spec:       s.Spec, Status: *status,
	}
	if s.Faults.Scale == "version" {
		hpa.Spec.ScaleTargetRef.APIVersion = "a/b/c"
	}
	if err := u.hpas.Add(hpa); err != nil {
		panic(err)
	}
	u.know(s.Others...)

	key := namespace + "/" + name
	_, err := reconcileKey(u.controller, context.Background(), key)
	o := outcome{Err: err, Updates: u.apis.updates, Status: u.apis.status, Events: u.events.list}
	for _, r := range (*field[map[string][]recommendation](u.controller, "recommendations"))[key] {
		o.Memory.Recommendations = append(o.Memory.Recommendations, autoscaler.ReplicaRecommendation{Replicas: r.Replicas, At: r.At})
	}
	changes := func(name string) (list []autoscaler.ReplicaChange) {
		for _, c := range (*field[map[string][]change](u.controller, name))[key] {
			list = append(list, autoscaler.ReplicaChange{Replicas: c.Replicas, At: c.At, Outdated: c.Outdated})
		}
		return list
	}
	o.Memory.Ups, o.Memory.Downs = changes("scaleUpEvents"), changes("scaleDownEvents")
	return o
}

func parse(selector string) labels.Selector {
	s, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return s
}

// events records the events of a controller.
type events struct{ list []autoscaler.Event }

func (e *events) Event(_ runtime.Object, kind, reason, message string) {
	e.list = append(e.list, autoscaler.Event{Type: kind, Reason: reason, Message: message})
}

func (e *events) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (e *events) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(object, kind, reason, format, args...)
}
