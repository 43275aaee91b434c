package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/resize"
)

// server is the part of an API server and a kubelet that an Applier needs. It merges patches as
// Kubernetes does and checks preconditions. After a patch the pod's status goes through the
// recorded states.
type server struct {
	client *fake.Clientset
	pod    *corev1.Pod // nil after the pod was deleted
	trace  []moment
	log    []string
	asked  time.Time // the time of the patch; zero before it
	// before is called before each request with its verb. If it returns an error, that error is the
	// answer.
	before func(verb string) error
}

// pods is a PodClient.
type pods struct{ *fake.Clientset }

func (p pods) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return p.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (p pods) ResizePod(ctx context.Context, namespace, name string, patch []byte, o metav1.PatchOptions) (*corev1.Pod, error) {
	return p.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, o, "resize")
}

func newServer(pod *corev1.Pod, trace []moment) *server {
	s := &server{client: fake.NewClientset(), pod: pod, trace: trace}
	s.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o, err := s.react(a)
		return true, o, err
	})
	return s
}

func (s *server) react(a clienttesting.Action) (runtime.Object, error) {
	verb := a.GetVerb()
	patch, patches := a.(clienttesting.PatchActionImpl)
	if patches {
		verb = "patch"
		if len(patch.PatchOptions.DryRun) > 0 {
			verb = "dry-run"
		}
		s.log = append(s.log, fmt.Sprintf("%s %s %s by %s: %s", verb, a.GetSubresource(), patch.PatchType, patch.PatchOptions.FieldManager, patch.Patch))
	}
	if s.before != nil {
		if err := s.before(verb); err != nil {
			return nil, err
		}
	}
	switch {
	case s.pod == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), "cart")
	case !patches:
		for i := range s.trace {
			if m := &s.trace[i]; !s.asked.IsZero() && time.Since(s.asked) >= m.after() {
				m.overlay(s.pod)
			}
		}
		return s.pod.DeepCopy(), nil
	}
	patched, err := merge(s.pod, patch.Patch)
	if err == nil && verb == "patch" {
		patched.Generation++
		s.touch(patched)
		s.pod, s.asked = patched, time.Now()
	}
	return patched, err
}

// touch gives a pod the next resourceVersion.
func (s *server) touch(p *corev1.Pod) {
	n, _ := strconv.Atoi(s.pod.ResourceVersion)
	p.ResourceVersion = strconv.Itoa(n + 1)
}

func merge(pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	old, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	var to corev1.Pod
	if err := json.Unmarshal(merged, &to); err != nil {
		return nil, err
	}
	if to.ResourceVersion != pod.ResourceVersion || to.UID != pod.UID {
		return nil, apierrors.NewConflict(corev1.Resource("pods"), pod.Name, errors.New("the object has been modified"))
	}
	return &to, nil
}

// cgroupsOf returns what an agent would report about a pod's cgroups on a node with cgroup version
// 1.
func cgroupsOf(p *corev1.Pod) []Cgroup {
	dir := "/kubepods/" + strings.ToLower(string(p.Status.QOSClass)) + "/pod" + string(p.UID)
	number := func(n int64) *int64 { return &n }
	list := []Cgroup{{Path: dir, Pod: true}}
	for _, c := range p.Spec.Containers {
		r := c.Resources
		list = append(list, Cgroup{Path: dir + "/" + c.Name, Container: c.Name,
			Shares: number(max(2, r.Requests.Cpu().MilliValue()*1024/1000)), Quota: number(r.Limits.Cpu().MilliValue() * 100), Period: number(100_000),
			MemoryLimit: number(r.Limits.Memory().Value())})
	}
	return list
}

// play resizes a pod and returns a log of everything that happens.
func play(t *testing.T, s *server, o Options, r Request) string {
	t.Helper()
	var out strings.Builder
	synctest.Test(t, func(t *testing.T) {
		o.Client = pods{s.client}
		o.Progress = func(state ResizeState) { fmt.Fprintf(&out, "%s %s\n", state.Stage, state.Message) }
		a := New(o)
		plan, err := a.Plan(t.Context(), r)
		if err != nil {
			fmt.Fprintf(&out, "refused: %v\n", err)
			return
		}
		for _, step := range plan.Steps {
			fmt.Fprintf(&out, "%s %s %s %s -> %s\n", step.Container, step.Resource, step.Field, step.From, step.To)
		}
		result, err := a.Apply(t.Context(), plan)
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
		}
		if result == nil {
			return
		}
		fmt.Fprintf(&out, "%s after %.1fs, timed out %v, in place %v\n", result.Stage, result.TookSeconds, result.TimedOut, result.InPlace())
		for _, c := range result.Containers {
			fmt.Fprintf(&out, "%s %.6s restarts %d restarted %v\n", c.Name, c.ID[len("containerd://"):], c.Restarts, c.Restarted)
		}
		if c := result.Cgroups; c != nil {
			fmt.Fprintf(&out, "cgroups checked %v %s%s\n", c.Checked, strings.Join(c.Problems, "; "), c.UncheckedReason)
		}
	})
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// TestPlay resizes pods of the captures, with the recorded answers of the kubelet. With "cgroups"
// an agent answers. With "left-behind" the agent finds a second cgroup of the pod. With "stale" it
// finds the old values.
func TestPlay(t *testing.T) {
	all := steps(t)
	datadriven.RunTest(t, "testdata/play.txt", func(t *testing.T, d *datadriven.TestData) string {
		var n int
		d.ScanArgs(t, "n", &n)
		step := all[n-1]
		before := step.at(t, &step.Before)
		s := newServer(before, step.Trace)
		o := Options{Restart: d.HasArg("restart")}
		switch {
		case d.HasArg("cgroups"):
			o.Cgroups = func(context.Context, string, string) ([]Cgroup, error) { return cgroupsOf(s.pod), nil }
		case d.HasArg("stale"):
			o.Cgroups = func(context.Context, string, string) ([]Cgroup, error) { return cgroupsOf(before), nil }
		case d.HasArg("left-behind"):
			o.Cgroups = func(context.Context, string, string) ([]Cgroup, error) {
				return append(cgroupsOf(s.pod), Cgroup{Path: "/kubepods/besteffort/pod" + string(before.UID), Pod: true}), nil
			}
		}
		if step.RC != 0 { // the recorded error of the API server
			s.before = func(verb string) error {
				if verb != "dry-run" {
					return nil
				}
				return apierrors.NewForbidden(corev1.Resource("pods"), step.Pod, errors.New(step.Output[strings.Index(step.Output, "forbidden: ")+len("forbidden: "):]))
			}
		}
		text := play(t, s, o, Request{Namespace: "default", Pod: step.Pod, Changes: step.changes()})
		if d.HasArg("log") {
			text += strings.Join(s.log, "\n") + "\n"
		}
		return step.Pod + ": " + step.Step + "\n" + text
	})
}

// first returns a server and a request for the first recorded step.
func first(t *testing.T) (*server, Request) {
	t.Helper()
	step := steps(t)[0]
	return newServer(step.at(t, &step.Before), step.Trace), Request{Namespace: "default", Pod: step.Pod, Changes: step.changes()}
}

// TestConflicts checks that a resize survives a few status updates by the kubelet, and fails if the
// pod changes before every attempt.
func TestConflicts(t *testing.T) {
	f := func(conflicts map[string]int, want string) {
		t.Helper()
		s, r := first(t)
		s.before = func(verb string) error {
			if conflicts[verb]--; conflicts[verb] >= 0 {
				s.touch(s.pod)
			}
			return nil
		}
		if got := play(t, s, Options{}, r); !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	f(map[string]int{"dry-run": 2, "patch": 2}, "Done after 0.2s")
	f(map[string]int{"dry-run": maxAttempts}, "refused: try the resize: Operation cannot be fulfilled")
	f(map[string]int{"patch": maxAttempts}, "error: resize the pod: Operation cannot be fulfilled")
}

// TestRefusals checks the message of each refusal, and that the pod is not patched.
func TestRefusals(t *testing.T) {
	f := func(name, want string, change func(s *server, r *Request)) {
		t.Helper()
		s, r := first(t)
		change(s, &r)
		got := play(t, s, Options{}, r)
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s\nwant %s", name, got, want)
		}
		for _, line := range s.log {
			if strings.HasPrefix(line, "patch") {
				t.Errorf("%s: the pod was patched: %s", name, line)
			}
		}
	}
	f("no pod", `refused: read pod: pods "cart" not found`, func(s *server, _ *Request) { s.pod = nil })
	f("another pod", "refused: pod default/resize-burst: another pod has that name by now", func(_ *server, r *Request) { r.UID = "other" })
	f("no container", "refused: pod default/resize-burst has no container app: it has main, side", func(_ *server, r *Request) { r.Changes[0].Container = "app" })
	f("no change", "refused: the containers are asked to have what they have", func(_ *server, r *Request) {
		r.Changes = []resize.ResourceChange{{Container: "main", Resource: resize.CPU, Request: resize.Of(200)}}
	})
	f("an old API server", "refused: this API server cannot resize pods in place, which takes Kubernetes 1.33 or later", func(s *server, _ *Request) {
		s.before = func(verb string) error {
			if verb != "dry-run" {
				return nil
			}
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}}
		}
	})
	f("quota", "refused: try the resize: pods \"resize-burst\" is forbidden: exceeded quota", func(s *server, _ *Request) {
		s.before = func(verb string) error {
			if verb != "dry-run" {
				return nil
			}
			return apierrors.NewForbidden(corev1.Resource("pods"), "resize-burst", errors.New("exceeded quota"))
		}
	})
}

// TestWhileWaiting checks the wait for the kubelet while the API server cannot be reached, and
// after the pod was deleted.
func TestWhileWaiting(t *testing.T) {
	f := func(want string, get func(s *server, n int) error) {
		t.Helper()
		s, r := first(t)
		n := 0
		s.before = func(verb string) error {
			if verb != "get" || s.asked.IsZero() {
				return nil
			}
			n++
			return get(s, n)
		}
		if got := play(t, s, Options{Timeout: time.Minute}, r); !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	f("Done after 0.4s", func(_ *server, n int) error {
		if n <= 3 {
			return apierrors.NewInternalError(errors.New("no leader"))
		}
		return nil
	})
	f("Gone the pod was deleted\n", func(s *server, _ int) error { s.pod = nil; return nil })
	f("error: follow the pod:", func(*server, int) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "resize-burst", errors.New("no longer"))
	})
	f("Asked after 60.0s, timed out true, in place false", func(s *server, _ int) error { s.trace = nil; return nil })
	f("Superseded", func(s *server, n int) error {
		if n == 1 {
			s.trace = nil
			s.pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resize.Quantity(resize.CPU, 300)
		}
		return nil
	})
}

// TestInterrupted checks that an interrupted call returns the state that the resize has reached.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := first(t)
		s.trace = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := New(Options{Client: pods{s.client}})
		plan, err := a.Plan(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		result, err := a.Apply(ctx, plan)
		if !errors.Is(err, context.DeadlineExceeded) || result == nil || result.Stage != Asked || result.TimedOut {
			t.Errorf("got %+v, %v", result, err)
		}
	})
}

// TestPodLevel resizes a pod that has requests of its own. The kubelet answers after 0.2 s; it adds the
// overhead of the RuntimeClass, and the cgroup's memory limit is in whole pages.
func TestPodLevel(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "1", ResourceVersion: "1", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName: "n1", Overhead: list("50m", "10Mi"), Containers: []corev1.Container{{Name: "app"}},
			Resources: &corev1.ResourceRequirements{Requests: list("500m", "512Mi"), Limits: list("1", "1Gi")},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 1,
			AllocatedResources: list("550m", "522Mi"), Resources: &corev1.ResourceRequirements{Requests: list("550m", "512Mi"), Limits: list("1050m", "1034Mi")},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "containerd://1", Resources: &corev1.ResourceRequirements{}, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	number := func(n int64) *int64 { return &n }
	f := func(pod *corev1.Pod, cgroup Cgroup, want string, changes ...resize.ResourceChange) string {
		t.Helper()
		s := newServer(pod.DeepCopy(), nil)
		s.before = func(verb string) error {
			if verb == "get" && s.pod.Generation == 2 && time.Since(s.asked) >= 200*time.Millisecond {
				s.pod.Status.ObservedGeneration = 2
				s.pod.Status.AllocatedResources = list("150m", "266Mi")
				s.pod.Status.Resources = &corev1.ResourceRequirements{Requests: list("150m", "256Mi"), Limits: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: *resource.NewQuantity(310<<20, resource.BinarySI)}}
			}
			return nil
		}
		got := play(t, s, Options{Cgroups: func(context.Context, string, string) ([]Cgroup, error) { return []Cgroup{cgroup}, nil }},
			Request{Namespace: "shop", Pod: "cart", Changes: changes})
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		return strings.Join(s.log, "\n")
	}
	changes := []resize.ResourceChange{
		{Resource: resize.CPU, Request: resize.Of(100), Limit: resize.Of(200)},
		{Resource: resize.Memory, Request: resize.Of(256 << 20), Limit: resize.Of(300<<20 + 7)},
	}
	cgroup := Cgroup{Path: "/pod", Pod: true, Shares: number(153), Quota: number(25_000), Period: number(100_000)}
	steps := ` cpu request 500m -> 100m
 cpu limit 1 -> 200m
 memory request 512Mi -> 256Mi
 memory limit 1Gi -> 300Mi
Asked 
Done 
Done after 0.2s, timed out false, in place true
app 1 restarts 0 restarted false
cgroups checked true 
`
	log := f(pod, cgroup, steps, changes...)
	if want := `"spec":{"resources":{"limits":{"cpu":"200m","memory":"314572807"},"requests":{"cpu":"100m","memory":"256Mi"}}}`; strings.Count(log, want) != 2 {
		t.Errorf("got the patches\n%s\nwant them with %s", log, want)
	}
	stale := cgroup
	stale.Shares = number(563)
	f(pod, stale, strings.NewReplacer("in place true", "in place false", "checked true ", "checked true cpu.shares of /pod is 563, and should be 153").Replace(steps), changes...)

	off := pod.DeepCopy() // a cluster without the feature gate
	off.Status.Resources, off.Status.AllocatedResources = nil, nil
	f(off, cgroup, "refused: it has requests of its own (spec.resources), and its status does not report them: resizing such a pod takes the feature gate "+
		"InPlacePodLevelResourcesVerticalScaling at the API server and the kubelet, which is on since Kubernetes 1.36\n", changes...)
}
