//go:build e2e

package node

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/test/cluster/harness"
)

// ghostNode is a node without a kubelet: what happens to it happens to no other test.
const ghostNode, ghostTaint = "ghost", "death-matrix"

// first is the pod that has another preempted, before a critical one preempts it.
const first = "first"

// signalled are pods. A process on the node sends a signal to the container of each.
var signalled = map[string]struct {
	signal unix.Signal
	cause  death.Cause
}{
	"kill": {unix.SIGKILL, death.Signalled},
	"hup":  {unix.SIGHUP, death.Signalled},
	"term": {unix.SIGTERM, death.Completed}, // it handles the signal
}

// A deathCase is a pod whose end is known from how it is made. An empty cause means that nothing ends.
type deathCase struct {
	made      string
	pod       *corev1.Pod
	container string // which one ends; empty: the pod as a whole
	cause     death.Cause
	says      string // part of the message
}

// container returns a container that runs the test's workload with small requests, because all pods of the
// matrix run at the same time.
func container(name string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: harness.WorkloadImage, ImagePullPolicy: corev1.PullNever, Args: args,
		Resources: corev1.ResourceRequirements{Requests: requests(8*mi, 0)},
	}
}

// deathCases returns the cases of a node with this version of cgroups: exits, signals, limits on memory and disk, probes,
// deadline, hooks, runtime, and those that something else does to a pod.
func deathCases(v2 bool) (all []deathCase) {
	add := func(cause death.Cause, made, name string, c corev1.Container, change func(*corev1.Pod)) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{c}, TerminationGracePeriodSeconds: new(int64(0)),
		}}
		if change != nil {
			change(p)
		}
		all = append(all, deathCase{made: made, pod: p, container: "app", cause: cause})
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
	// The kernel ignores a signal without a handler that process 1 of a namespace gets from within.
	shared := func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }
	for signal, cause := range map[int]death.Cause{6: death.Crashed, 11: death.Crashed, 9: death.Signalled, 15: death.Signalled} {
		add(cause, fmt.Sprint("sends itself signal ", signal), fmt.Sprint("itself-", signal), container("app", "exit", "--after=2s", fmt.Sprint("--signal=", signal)), shared)
	}
	for name, c := range signalled {
		add(c.cause, fmt.Sprint("a process on the node sends it ", unix.SignalName(c.signal)), name, container("app", "pause"), shared)
	}
	add(death.Exited, "panics", "panics", container("app", "crash", "--after=2s"), nil)
	for _, mi := range []string{"32Mi", "48Mi", "64Mi"} {
		c := container("app", "hold", "--bytes=200Mi")
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(mi)}
		add(death.ContainerLimit, "holds 200Mi, with a memory limit of "+mi, "limit-"+strings.ToLower(mi), c, nil)
	}
	parent := func(cause death.Cause, made, name string, args ...string) {
		c := container("app", append([]string{"exit", "--child=200Mi"}, args...)...)
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		add(cause, made, name, c, nil)
	}
	// With version 2, the kubelet has the kernel kill all processes of the container.
	one := death.ChildKilled
	if v2 {
		one = death.ContainerLimit
	}
	parent(one, "its child is killed for memory, and it would go on", "parent", "--after=1h")
	parent(one, "its child is killed for memory, and it would exit with code 3", "parent-3", "--after=6s", "--code=3")
	parent(one, "its child is killed for memory, and it would exit with code 0", "parent-0", "--after=6s")
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
	slow := container("app", "hold", "--bytes=1Mi", "--deaf")
	slow.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/workload", "pause"}}}}
	slow.LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 2, InitialDelaySeconds: 2, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: closed}}}
	add(death.LivenessProbe, "a liveness probe fails, and its hook preStop overruns the grace period", "slow-probe", slow, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(2)) })
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
	failed := container("app", "exit", "--after=1s", "--code=7")
	add(death.Exited, "an init container exits with code 7, and its pod fails", "init-failed", container("main", "pause"), func(p *corev1.Pod) {
		p.Spec.InitContainers, p.Spec.RestartPolicy = []corev1.Container{failed}, corev1.RestartPolicyNever
	})
	large := container("app", "hold", "--bytes=200Mi")
	large.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	add(death.ContainerLimit, "an init container holds 200Mi, with a memory limit of 64Mi", "init-limit", container("main", "pause"), func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{large}
	})
	sidecar := func(cause death.Cause, made, name string, side, main corev1.Container, change func(*corev1.Pod)) {
		add(cause, made, name, main, func(p *corev1.Pod) {
			side.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			p.Spec.InitContainers = []corev1.Container{side}
			change(p)
		})
	}
	sick := container("app", "pause")
	sick.LivenessProbe = slow.LivenessProbe
	sidecar(death.LivenessProbe, "a liveness probe of a sidecar fails", "sidecar-live", sick, container("main", "pause"), func(*corev1.Pod) {})
	done := func(p *corev1.Pod) {
		p.Spec.RestartPolicy, p.Spec.TerminationGracePeriodSeconds = corev1.RestartPolicyNever, new(int64(2))
	}
	sidecar(death.KubeletStopped, "a sidecar ends when it is asked to, because its pod is done", "sidecar-ends", container("app", "pause"), container("main", "exit", "--after=3s"), done)
	sidecar(death.KubeletStopped, "a sidecar must be killed, because its pod is done", "sidecar-killed", container("app", "hold", "--bytes=1Mi", "--deaf"), container("main", "exit", "--after=3s"), done)
	all[len(all)-2].says, all[len(all)-1].says = "it is a sidecar", "it is a sidecar"
	add(death.Exited, "exits with code 4, and is collected later as a pod that is done", "collected", container("app", "exit", "--after=1s", "--code=4"), done)
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
	overrun := func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds, p.Spec.Containers[0].Lifecycle = new(int64(2)), slow.Lifecycle
	}
	whole(death.Deleted, "is deleted, and its hook preStop overruns the grace period", "slow", overrun, "hold", "--bytes=1Mi", "--deaf")
	whole(death.Deleted, "is deleted, and its hook preStop fails", "hook-fails", func(p *corev1.Pod) {
		overrun(p)
		p.Spec.Containers[0].Lifecycle = hooked.Lifecycle.DeepCopy()
		p.Spec.Containers[0].Lifecycle.PreStop, p.Spec.Containers[0].Lifecycle.PostStart = hooked.Lifecycle.PostStart, nil
	}, "pause")
	whole("", "is deleted before it has a node", "homeless", func(p *corev1.Pod) {
		p.Spec.NodeSelector, p.Spec.TerminationGracePeriodSeconds = map[string]string{"no": "node"}, new(int64(5))
	}, "pause")
	whole(death.APIEviction, "is evicted through the Eviction API", "evicted", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(5)) }, "pause")
	whole(death.Preempted, "a pod with a higher priority needs its CPU", "preempted", func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("800m")
	}, "pause")
	whole(death.Preempted, "a critical pod needs its CPU on the node", first, func(p *corev1.Pod) {
		p.Spec.PriorityClassName, p.Spec.TerminationGracePeriodSeconds = "death-matrix", new(int64(5))
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("800m")
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
	for name, how := range map[string]string{"shut-down": "fails", "shut-down-well": "ends without an error"} {
		whole(death.NodeShutdown, "its node shuts down, and it "+how, name, ghost(func(s *corev1.PodSpec) {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}), "pause")
	}
	whole(death.TaintEviction, "its node is out of service", "out-of-service", ghost(func(s *corev1.PodSpec) {
		s.TerminationGracePeriodSeconds, s.Tolerations = new(int64(30)), append(s.Tolerations, corev1.Toleration{Key: ghostTaint, Operator: corev1.TolerationOpExists})
	}), "pause")
	whole("", "goes on", "calm", nil, "pause")
	whole("", "is not ready, and goes on", "unready", func(p *corev1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: closed}}}
	}, "pause")
	return all
}

// TestDeathMatrix forces ends whose cause is known from how they are made, and compares weir's answers with it. All
// must be right, and a pod that goes on has none.
func TestDeathMatrix(t *testing.T) {
	w := sharedCluster
	w.agent(t, "matrix")
	namespace, cases := w.namespace(t, "death-matrix"), deathCases(w.v2)
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
	m := matrix{w, w.kube.CoreV1().Pods(namespace)}
	for i := range cases {
		if cases[i].pod.Name != first {
			m.make(t, cases[i].pod)
		}
	}
	m.end(t)
	if err := nodes.Delete(t.Context(), ghost.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		if cases[i].pod.Name == first {
			m.make(t, cases[i].pod)
		}
	}
	m.runs(t, first)
	critical := w.pod("critical", "system-node-critical", requests(8*mi, 0), "pause")
	critical.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("800m")
	m.make(t, critical)

	right := 0
	var table []string
	for i := range cases {
		c := &cases[i]
		answer, ok := m.judge(t, namespace, c)
		verdict := "**wrong**"
		if ok {
			right++
			verdict = "right"
		}
		table = append(table, fmt.Sprintf("| %s | %s | %s | %s |", c.made, c.truth(), answer, verdict))
	}
	slices.Sort(table)
	t.Logf("%d of %d right\n%s", right, len(cases), strings.Join(table, "\n"))
	if right < len(cases) {
		t.Errorf("%d of %d are right", right, len(cases))
	}
}

// matrix ends pods from outside.
type matrix struct {
	*testCluster
	pods typedv1.PodInterface
}

// end does to pods what their cases name, except for what ghostNode's deletion and preemption do.
func (m *matrix) end(t *testing.T) {
	t.Helper()
	m.runs(t, "deleted", "slow", "hook-fails", "evicted", "preempted", "calm")
	for _, name := range []string{"deleted", "slow", "hook-fails", "homeless"} {
		m.remove(t, name, metav1.DeleteOptions{})
	}
	if err := m.pods.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "evicted"}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range signalled {
		m.runs(t, name)
		m.signal(t, name, c.signal)
	}
	for _, name := range []string{"tainted", "orphaned", "out-of-service", "shut-down", "shut-down-well"} {
		m.write(t, name, func(s *corev1.PodStatus) {
			now := metav1.Now()
			s.Phase, s.StartTime = corev1.PodRunning, &now
			s.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "app", ContainerID: "containerd://" + name, Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}}
		})
	}
	m.shutDown(t, "shut-down", corev1.PodFailed, 137)
	m.shutDown(t, "shut-down-well", corev1.PodSucceeded, 0)
	taints := fmt.Appendf(nil, `{"spec":{"taints":[{"key":%q,"effect":"NoExecute"},{"key":%q,"effect":"NoExecute"}]}}`, ghostTaint, corev1.TaintNodeOutOfService)
	if _, err := m.kube.CoreV1().Nodes().Patch(t.Context(), ghostNode, types.MergePatchType, taints, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// The collector of pods takes one that its node will not end, each 20 s.
	for _, name := range []string{"tainted", "out-of-service"} {
		m.until(t, name+" is gone", func() bool { return m.get(t, name) == nil })
	}
	m.until(t, "a container has ended", func() bool {
		p := m.get(t, "collected")
		return p != nil && p.Status.Phase == corev1.PodFailed
	})
	m.remove(t, "collected", *metav1.NewDeleteOptions(0)) // as the collector does with pods that are done, above terminated-pod-gc-threshold
}

// make creates a pod.
func (m *matrix) make(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if _, err := m.pods.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if slowness == 1 || p.Spec.NodeName == ghostNode || p.Spec.NodeSelector != nil {
		return
	}
	// A slow node that starts all of them at once starts none in time.
	m.until(t, p.Name+" is no longer being made", func() bool {
		p := m.get(t, p.Name)
		return p == nil || p.Status.Phase == corev1.PodFailed || slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
			waiting := s.State.Waiting
			return waiting == nil || waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing"
		})
	})
}

// until waits until something is so.
func (m *matrix) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	eventually(t, what, 2*time.Minute, func() error {
		if !so() {
			return errors.New("not yet")
		}
		return nil
	})
}

// get returns a pod, or nil if it does not exist.
func (m *matrix) get(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	p, err := m.pods.Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// runs waits until pods run.
func (m *matrix) runs(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		m.until(t, name+" runs", func() bool {
			p := m.get(t, name)
			return p != nil && slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Running != nil })
		})
	}
}

func (m *matrix) remove(t *testing.T, name string, o metav1.DeleteOptions) {
	t.Helper()
	if err := m.pods.Delete(t.Context(), name, o); err != nil {
		t.Fatal(err)
	}
}

// signal sends a signal to the only process of a pod's container.
func (m *matrix) signal(t *testing.T, name string, s unix.Signal) {
	t.Helper()
	p := m.get(t, name)
	process, err := m.readFile(t.Context(), m.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]+"/cgroup.procs")
	if err != nil || strings.Count(process, "\n") != 1 {
		t.Fatalf("the container of pod %s has processes %q, %v; want one", name, process, err)
	}
	kill := fmt.Sprintf("kill -%d %s", s, strings.TrimSpace(process))
	if m.v2 {
		m.inGuest(t, kill)
	} else if err := exec.CommandContext(t.Context(), "sh", "-c", kill).Run(); err != nil {
		t.Fatal(err)
	}
}

// write changes the status of a pod, as the kubelet would that its node does not have.
func (m *matrix) write(t *testing.T, name string, change func(*corev1.PodStatus)) {
	t.Helper()
	p := m.get(t, name)
	change(&p.Status)
	if _, err := m.pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// shutDown writes the status that Kubernetes' pkg/kubelet/nodeshutdown has for a pod. If all containers end without
// an error, generateAPIPodStatus of pkg/kubelet replaces the phase, and drops the reason and the message with it.
func (m *matrix) shutDown(t *testing.T, name string, phase corev1.PodPhase, code int32) {
	t.Helper()
	const message = "Pod was terminated in response to imminent node shutdown."
	m.write(t, name, func(s *corev1.PodStatus) {
		now := metav1.Now()
		if s.Phase = phase; phase == corev1.PodFailed {
			s.Reason, s.Message = "Terminated", message
		}
		s.Conditions = append(s.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, Message: message, LastTransitionTime: now,
		})
		c := &s.ContainerStatuses[0]
		c.Ready, c.Started, c.State = false, new(false), corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: map[bool]string{true: "Completed", false: "Error"}[code == 0], StartedAt: c.State.Running.StartedAt, FinishedAt: now, ContainerID: c.ContainerID,
		}}
	})
}

func (c *deathCase) truth() string {
	if c.cause == "" {
		return "nothing"
	}
	return string(c.cause)
}

// judge waits until weir names the cause of a case, and returns the last answer. The first end counts: a
// container that ends again and again has others later.
func (m *matrix) judge(t *testing.T, namespace string, c *deathCase) (answer string, right bool) {
	ask := func() error {
		r, err := m.deaths(t.Context(), strings.TrimSuffix(namespace+"/"+c.pod.Name+"/"+c.container, "/"))
		if err != nil {
			return err
		}
		answer, right = "nothing", c.cause == ""
		if n := len(r.Deaths); n > 0 {
			d := r.Deaths[n-1]
			answer, right = fmt.Sprintf("%s, %s: %s", d.Cause, d.Confidence, d.Message), d.Cause == c.cause && strings.Contains(d.Message, c.says)
		}
		if !right {
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
	return answer, right
}
