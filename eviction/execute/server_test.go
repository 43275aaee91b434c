package execute

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/eviction"
)

const node = "n1"

// server is the part of an API server that an Executor needs. It stores pods, checks preconditions,
// and keeps a deleted pod for a while. It logs the requests.
type server struct {
	client  *fake.Clientset
	pods    map[string]*corev1.Pod
	version int
	log     []string
	linger  time.Duration // the time from a deletion until the pod is gone; zero means the grace period
	// before is called before each request, with its verb and its number among the requests with that
	// verb. If it returns an error, that error is the answer.
	before func(verb string, n int) error
	count  map[string]int
}

func newServer(pods ...*corev1.Pod) *server {
	s := &server{client: fake.NewClientset(), pods: map[string]*corev1.Pod{}, version: 6, count: map[string]int{}}
	for _, p := range pods {
		s.put(p)
	}
	s.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o, err := s.react(a)
		return true, o, err
	})
	return s
}

func (s *server) put(p *corev1.Pod) {
	s.version++
	p = p.DeepCopy()
	p.ResourceVersion = strconv.Itoa(s.version)
	s.pods[p.Namespace+"/"+p.Name] = p
}

func notFound(name string) error {
	return apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func conflict(name string) error {
	return apierrors.NewConflict(corev1.Resource("pods"), name, fmt.Errorf("the object has been modified"))
}

func (s *server) react(a clienttesting.Action) (runtime.Object, error) {
	var name string
	var options *metav1.DeleteOptions
	verb := a.GetVerb()
	switch a := a.(type) {
	case clienttesting.GetActionImpl:
		name = a.Name
		s.addLine("get %s/%s", a.Namespace, name)
	case clienttesting.PatchActionImpl:
		name = a.Name
		s.addLine("patch %s/%s/%s %s %s", a.Namespace, name, a.Subresource, a.PatchType, a.Patch)
	case clienttesting.DeleteActionImpl:
		name, options = a.Name, &a.DeleteOptions
		s.addLine("delete %s/%s %s", a.Namespace, name, describeOptions(options))
	case clienttesting.CreateActionImpl:
		e, ok := a.Object.(*policyv1.Eviction)
		if !ok {
			return nil, fmt.Errorf("unexpected creation of %T", a.Object)
		}
		verb, name, options = "evict", e.Name, e.DeleteOptions
		s.addLine("%s %s/%s %s", a.Subresource, e.Namespace, name, describeOptions(options))
	default:
		return nil, fmt.Errorf("unexpected request %s %v", verb, a.GetResource())
	}
	if s.before != nil {
		s.count[verb]++
		if err := s.before(verb, s.count[verb]); err != nil {
			return nil, err
		}
	}
	pod := s.pods[a.GetNamespace()+"/"+name]
	if pod == nil {
		return nil, notFound(name)
	}
	if p, ok := a.(clienttesting.PatchActionImpl); ok {
		return s.patch(pod, p.Patch)
	}
	if options != nil {
		return nil, s.delete(pod, options)
	}
	return pod.DeepCopy(), nil
}

func (s *server) addLine(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func describeOptions(o *metav1.DeleteOptions) string {
	line := fmt.Sprintf("grace=%d", *o.GracePeriodSeconds)
	if p := o.Preconditions; p != nil && p.UID != nil {
		line += " uid=" + string(*p.UID)
	}
	if p := o.Preconditions; p != nil && p.ResourceVersion != nil {
		line += " version=" + *p.ResourceVersion
	}
	return line
}

func (s *server) patch(pod *corev1.Pod, patch []byte) (runtime.Object, error) {
	var to corev1.Pod
	if err := json.Unmarshal(patch, &to); err != nil {
		return nil, err
	}
	if to.UID != pod.UID || to.ResourceVersion != pod.ResourceVersion {
		return nil, conflict(pod.Name)
	}
	old, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	var after corev1.Pod
	if err := json.Unmarshal(merged, &after); err != nil {
		return nil, err
	}
	s.put(&after)
	return s.pods[pod.Namespace+"/"+pod.Name].DeepCopy(), nil
}

func (s *server) delete(pod *corev1.Pod, o *metav1.DeleteOptions) error {
	if p := o.Preconditions; p.UID != nil && *p.UID != pod.UID || p.ResourceVersion != nil && *p.ResourceVersion != pod.ResourceVersion {
		return conflict(pod.Name)
	}
	after := pod.DeepCopy()
	grace := time.Duration(*o.GracePeriodSeconds) * time.Second
	after.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(grace)}
	after.DeletionGracePeriodSeconds = o.GracePeriodSeconds
	s.put(after)
	if s.linger > 0 {
		grace = s.linger
	}
	key := pod.Namespace + "/" + pod.Name
	gone := time.Now().Add(grace)
	earlier := s.before
	// Time passes only between requests, so the clock is checked before each one.
	s.before = func(verb string, n int) error {
		if p := s.pods[key]; p != nil && p.UID == pod.UID && !time.Now().Before(gone) {
			delete(s.pods, key)
		}
		if earlier != nil {
			return earlier(verb, n)
		}
		return nil
	}
	return nil
}

// wrote returns the requests that change something.
func (s *server) wrote() []string {
	return slices.DeleteFunc(slices.Clone(s.log), func(l string) bool { return l[:4] == "get " })
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, UID: types.UID("uid-" + name), Generation: 3},
		Spec:       corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func killOf(name string, grace int64) eviction.Kill {
	return eviction.Kill{
		Pod:    eviction.PodIdentity{Namespace: "web", Name: name, UID: "uid-" + name},
		Signal: string(eviction.MemoryAvailable), GraceSeconds: grace,
		Message:     "The node was low on resource: memory. ",
		Annotations: map[string]string{"starved_resource": "memory"},
		Condition: &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet,
			Message: "The node was low on resource: memory. ",
		},
	}
}

// decision returns a decision for a threshold with this grace period; zero means a hard threshold.
func decision(grace time.Duration, kills ...eviction.Kill) *eviction.Decision {
	for i := range kills {
		kills[i].Hard = grace == 0
	}
	return &eviction.Decision{
		Outcome:    eviction.OutcomeEvict,
		Thresholds: []eviction.ThresholdState{{Threshold: eviction.Threshold{Signal: eviction.MemoryAvailable, Grace: grace}}},
		Kills:      kills,
	}
}

func executor(t *testing.T, s *server, change func(*Options)) *Executor {
	t.Helper()
	o := Options{Mode: Kill, Client: s.client, Node: node, Self: "uid-weir"}
	if change != nil {
		change(&o)
	}
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// only returns the only outcome, without its error.
func only(t *testing.T, list []ActionOutcome) ActionOutcome {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("got %d outcomes, want 1: %+v", len(list), list)
	}
	return list[0]
}
