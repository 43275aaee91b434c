//go:build e2e

package apis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
)

// ghostNode is a node without a kubelet: what happens to it happens to no other test.
const ghostNode = "ghost"

// A deathCase is a pod whose end is known from how it is made. An empty cause means that nothing ends.
type deathCase struct {
	made      string
	pod       *corev1.Pod
	container string // which one ends; empty: the pod as a whole
	cause     death.Cause
}

// deathCases returns the cases that need no cgroup version 2: exits, signals, limits on memory and disk, probes,
// deadline, hook, runtime, and those that something else does to a pod.
func deathCases() (all []deathCase) {
	add := func(cause death.Cause, made, name string, c corev1.Container, change func(*corev1.Pod)) {
		p := pod(name, c)
		if change != nil {
			change(p)
		}
		all = append(all, deathCase{made, p, "app", cause})
	}
	exits := func(cause death.Cause, codes ...int) {
		for _, code := range codes {
			add(cause, fmt.Sprintf("exits with code %d", code), fmt.Sprint("exit-", code), container("app", "exit", "--after=2s", fmt.Sprint("--code=", code)), nil)
		}
	}
	exits(death.Exited, 1, 2, 3, 42, 126, 127, 255)
	exits(death.Completed, 0)
	// The codes that a runtime reports for SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV and SIGPIPE, which a program
	// causes, and for SIGHUP, SIGINT, SIGKILL and SIGTERM.
	exits(death.Crashed, 132, 134, 135, 136, 139, 141)
	exits(death.Signalled, 129, 130, 137, 143)
	add(death.Exited, "panics", "panics", container("app", "crash", "--after=2s"), nil)
	for _, mi := range []string{"32Mi", "48Mi", "64Mi"} {
		c := container("app", "hold", "--bytes=200Mi")
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(mi)}
		add(death.ContainerLimit, "holds 200Mi, with a memory limit of "+mi, "limit-"+strings.ToLower(mi), c, nil)
	}
	closed := intstr.FromInt32(1)
	for name, handler := range map[string]corev1.ProbeHandler{
		"http": {HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: closed}},
		"tcp":  {TCPSocket: &corev1.TCPSocketAction{Port: closed}},
		"exec": {Exec: &corev1.ExecAction{Command: []string{"/workload", "nothing"}}},
	} {
		probe := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 2, InitialDelaySeconds: 2, ProbeHandler: handler}
		live, start := container("app", "pause"), container("app", "pause")
		live.LivenessProbe, start.StartupProbe = probe, probe
		add(death.LivenessProbe, "a liveness probe ("+name+") fails", "live-"+name, live, nil)
		add(death.StartupProbe, "a startup probe ("+name+") fails", "start-"+name, start, nil)
	}
	hooked := container("app", "pause")
	hooked.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/workload", "nothing"}}}}
	add(death.KubeletStopped, "its hook postStart fails", "hooked", hooked, nil)
	absent := container("app")
	absent.Command = []string{"/absent"}
	add(death.RuntimeError, "its program does not exist", "absent", absent, nil)
	add(death.Exited, "an init container exits with code 7", "init", container("main", "pause"), func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{container("app", "exit", "--after=1s", "--code=7")}
	})
	add(death.Exited, "one of two containers exits with code 5", "one-of-two", container("app", "exit", "--after=2s", "--code=5"), func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, container("other", "pause"))
	})
	add(death.Exited, "a sidecar exits with code 6", "sidecar", container("main", "pause"), func(p *corev1.Pod) {
		side, always := container("app", "exit", "--after=2s", "--code=6"), corev1.ContainerRestartPolicyAlways
		side.RestartPolicy = &always
		p.Spec.InitContainers = []corev1.Container{side}
	})
	whole := func(cause death.Cause, made, name string, change func(*corev1.Pod), args ...string) {
		add(cause, made, name, container("app", args...), change)
		all[len(all)-1].container = ""
	}
	whole(death.DeadlineExceeded, "runs longer than activeDeadlineSeconds", "deadline", func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(3)) }, "pause")
	whole(death.StorageLimit, "writes 20Mi into an emptyDir of 1Mi", "volume", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(1<<20, resource.BinarySI)}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}, "fill", "--dir=/data", "--bytes=20Mi")
	whole(death.Deleted, "is deleted", "deleted", nil, "pause")
	whole(death.APIEviction, "is evicted through the Eviction API", "evicted", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(5)) }, "pause")
	whole(death.Preempted, "a pod with a higher priority needs its CPU", "preempted", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1100m")
	}, "pause")
	ghost := func(change func(*corev1.PodSpec)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = ghostNode, new(int64(0))
			change(&p.Spec)
		}
	}
	whole(death.TaintEviction, "its node gets a taint with NoExecute", "tainted", ghost(func(*corev1.PodSpec) {}), "pause")
	whole(death.NodeGone, "its node is deleted", "orphaned", ghost(func(s *corev1.PodSpec) {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	}), "pause")
	whole("", "goes on", "calm", nil, "pause")
	whole("", "is not ready, and goes on", "unready", func(p *corev1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: closed}}}
	}, "pause")
	return all
}

// TestDeathMatrix forces ends whose cause is known from how they are made, and compares what weir says with it:
// 95% must be right, no wrong answer may be certain, and a pod that goes on has none.
func TestDeathMatrix(t *testing.T) {
	w := sharedCluster
	witness, namespace, cases := w.witness(t), w.namespace(t, "death-matrix"), deathCases()
	// It is made first: admission learns of it a moment later.
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "death-matrix"}, Value: 1000}
	if _, err := w.kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodes := w.kube.CoreV1().Nodes()
	ghost, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ghostNode}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test deletes it, unless it fails before
		_ = nodes.Delete(context.WithoutCancel(t.Context()), ghostNode, metav1.DeleteOptions{})
	})
	for i := range cases {
		w.create(t, namespace, cases[i].pod)
	}
	pods := w.kube.CoreV1().Pods(namespace)
	for _, name := range []string{"deleted", "evicted", "preempted", "calm"} {
		eventually(t, name+" runs", 2*time.Minute, func() error {
			p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && startOf(p).IsZero() {
				err = errors.New("it does not run")
			}
			return err
		})
	}
	if err := pods.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "evicted"}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tainted", "orphaned"} {
		w.writeRunning(t, namespace, name)
	}
	taint := []byte(`{"spec":{"taints":[{"key":"death-matrix","effect":"NoExecute"}]}}`)
	if _, err := nodes.Patch(t.Context(), ghost.Name, types.MergePatchType, taint, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod on the tainted node is deleted", 30*time.Second, func() error {
		_, err := pods.Get(t.Context(), "tainted", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is there"))
	})
	if err := nodes.Delete(t.Context(), ghost.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	first := pod("first", container("app", "pause"))
	first.Spec.PriorityClassName = class.Name
	first.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1100m")
	w.create(t, namespace, first)

	right, sure := 0, 0
	var table []string
	for i := range cases {
		c := &cases[i]
		answer, ok, certain := judge(t, witness, namespace, c)
		verdict := "**wrong**"
		if ok {
			right++
			verdict = "right"
		} else if certain {
			sure++
		}
		table = append(table, fmt.Sprintf("| %s | %s | %s | %s |", c.made, c.truth(), answer, verdict))
	}
	slices.Sort(table)
	t.Logf("%d of %d right\n%s", right, len(cases), strings.Join(table, "\n"))
	if 100*right < 95*len(cases) || sure > 0 {
		t.Errorf("%d of %d are right, and %d are wrong and certain", right, len(cases), sure)
	}
}

// writeRunning writes the status of a pod that runs, as the kubelet would that its node does not have.
func (w *testCluster) writeRunning(t *testing.T, namespace, name string) {
	t.Helper()
	pods := w.kube.CoreV1().Pods(namespace)
	p, err := pods.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", ContainerID: "containerd://" + name, Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	if _, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *deathCase) truth() string {
	if c.cause == "" {
		return "nothing"
	}
	return string(c.cause)
}

// judge waits until weir names the cause of a case, and returns what it says at the end. The first end counts: a
// container that ends again and again has others later.
func judge(t *testing.T, witness *explainapi.Client, namespace string, c *deathCase) (answer string, right, certain bool) {
	t.Helper()
	ask := func() error {
		r, err := witness.Deaths(t.Context(), death.Query{Namespace: metric.Namespace(namespace), Pod: metric.PodName(c.pod.Name), Container: c.container})
		answer, right, certain = "nothing", c.cause == "", false
		if err == nil && len(r.Deaths) > 0 {
			d := r.Deaths[len(r.Deaths)-1]
			answer, right, certain = fmt.Sprintf("%s, %s", d.Cause, d.Confidence), d.Cause == c.cause, d.Confidence == death.Certain
		}
		if err == nil && !right {
			err = errors.New(answer)
		}
		return err
	}
	within := 2 * time.Minute // the collector of pods looks at a node that is gone for 40 s, each 20 s
	if c.cause == "" {
		within = time.Second
	}
	if err := again(t.Context(), within, ask); err != nil {
		t.Logf("%s: %v", c.made, err)
	}
	return answer, right, certain
}
