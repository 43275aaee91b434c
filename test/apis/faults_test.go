//go:build e2e

package apis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/autoscaler/hpaevents"
	"github.com/weir-metrics/weir/explain"
)

// TestEveryAbsenceHasItsCause injects the faults of real clusters into pods and
// their node, and asks weir why there are no metrics.
func TestEveryAbsenceHasItsCause(t *testing.T) {
	w := sharedCluster
	f := &faults{w: w, t: t, namespace: w.namespace(t, "faults"), began: time.Now()}
	defer f.table()
	w.create(t, f.namespace, pod("steady", container("app", "use", "--millicores=10", "--bytes=8Mi")))
	w.deployment(t, f.namespace, "scaled", container("app", "serve", "--listen=:8080"))
	w.autoscale(t, f.namespace, "scaled", following("scaled", 2, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: autoscalingv2.MetricTarget{
			Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(1<<30, resource.BinarySI),
		}},
	}))
	f.pods()
	f.node()
}

// resolution is the interval between two reads of a node, plus time for the
// read itself.
const resolution = 20 * time.Second

// pods injects the faults of a pod, or of a node that exists only in the API
// server.
func (f *faults) pods() {
	w, t := f.w, f.t
	weir := w.user(t, "faults-viewer", f.namespace)
	impossible := pod("unschedulable", container("app", "pause"))
	impossible.Spec.NodeSelector = map[string]string{"weir.test/nowhere": "true"}
	w.create(t, f.namespace, impossible)

	imageless := pod("imageless", container("app", "pause"))
	imageless.Spec.Containers[0].Image = "weir.test/absent:latest"
	w.create(t, f.namespace, imageless)

	initialising := pod("initialising", container("app", "pause"))
	initialising.Spec.InitContainers = []corev1.Container{container("setup", "pause")}
	w.create(t, f.namespace, initialising)

	for name, args := range map[string][]string{"completed": {"exit"}, "failed": {"exit", "--code=3"}} {
		p := pod(name, container("app", args...))
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(t, f.namespace, p)
	}
	w.create(t, f.namespace, pod("crashing", container("app", "exit", "--code=1")))
	w.create(t, f.namespace, pod("half", container("app", "use", "--millicores=10", "--bytes=8Mi"), container("broken", "exit", "--code=1")))

	w.create(t, f.namespace, pod("frozen", container("app", "use", "--millicores=20", "--bytes=8Mi")))
	w.freeze(t, w.runs(t, f.namespace, "frozen"))

	finalized := pod("held", container("app", "pause"))
	finalized.Finalizers = []string{"weir.test/hold"}
	w.create(t, f.namespace, finalized)
	t.Cleanup(func() {
		_, stderr, err := w.Kubectl(context.Background(), "patch", "pod", "held", "-n", f.namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		if err != nil {
			t.Errorf("%v: %s", err, stderr)
		}
	})
	w.runs(t, f.namespace, "held")
	w.kubectl(t, "delete", "pod", "held", "-n", f.namespace, "--wait=false")

	node := w.NodeIP().String()
	w.addFakeNodes(t, f.namespace,
		fakeNode{name: "no-address", port: 10250},
		fakeNode{name: "left-out", address: node, port: 10250, labels: map[string]string{"weir.test/skip": "true"}},
		fakeNode{name: "nobody-listens", address: node, port: 10251},
		fakeNode{name: "another-answers", address: node, port: 10250},
	)
	w.pretend(t, f.namespace, "no-node", "nowhere")
	outsider := w.another(t, "weir-stranger", anotherWeirPort, "node-selector=!weir.test/skip", "ca="+w.FrontProxyCA())

	f.expect("no node fits", "unschedulable", "PodPending", weir, resolution)
	f.expect("the image cannot be had", "imageless", "PodPending", weir, resolution)
	f.expect("an init container runs", "initialising", "PodPending", weir, resolution)
	f.expect("its process has ended well", "completed", "PodFinished", weir, resolution)
	f.expect("its process has ended badly", "failed", "PodFinished", weir, resolution)
	f.expectState("its process ends again and again", "crashing", "crashing/app", weir)
	f.expect("deleted and ended, held by a finalizer", "held", "PodFinished", weir, resolution)
	f.expect("its node has no address", "no-address", "NodeNoAddress", weir, resolution)
	f.expect("its node is left out by --node-selector", "left-out", "NodeExcluded", weir, resolution)
	f.expect("nothing listens at its node's address", "nobody-listens", "NodeUnreachable", weir, resolution)
	f.passes() // within a minute, the API server finds that the node is not ready
	f.expect("another node answers at its node's address", "another-answers", "NodeWrongIdentity", weir, resolution)
	f.expect("its node does not exist", "no-node", "NodeUnknown", weir, resolution)
	f.passes() // the pod is deleted later
	f.expect("the kubelet's CA is unknown to weir", "steady", "NodeCertificate", outsider, resolution)
	f.expect("nothing was done", "steady", "Measured", weir, 2*resolution)
	f.expect("one of its two containers ends again and again", "half", "Measured", weir, 2*resolution)
	f.passes() // each time the container is started, the pod is without a number until the container has one
	f.expectState("the container that ends again and again", "half/broken", "half/broken", weir)
	f.expect("the container beside it", "half/app", "Measured", weir, resolution)
	f.expectYoungPod(weir)
	eventually(t, "a frozen pod is served with no CPU used", time.Minute, func() error {
		a, err := list(t.Context(), w.weir, f.namespace)
		if u, ok := a["frozen/app"]; err == nil && (!ok || u.millicores != 0 || u.bytes == 0) {
			err = fmt.Errorf("it is served: %v, with %+v", ok, u)
		}
		return err
	})
	f.expect("its processes are frozen", "frozen", "Measured", weir, 0)
	f.expectLastKnown()
	f.report()
}

// expectYoungPod creates a pod and asks why it has no metrics until it has
// some. The only allowed reasons are that it has not started, that it has not
// been read, or that it is too young.
func (f *faults) expectYoungPod(asks explainer) {
	f.t.Helper()
	began := time.Now()
	f.w.create(f.t, f.namespace, pod("young", container("app", "use", "--millicores=10", "--bytes=8Mi")))
	var said []string
	row := &fault{cause: "it has just started"}
	eventually(f.t, "a new pod has metrics", time.Minute, func() error {
		reason, message := f.explain(asks, "young")
		if reason == "Measured" {
			return nil
		}
		if reason == "no explanation" && len(said) == 0 {
			return errors.New(message) // weir does not know the pod yet
		}
		if !slices.Contains(said, reason) {
			said, row.message = append(said, reason), message
		}
		switch reason {
		case "PodPending", "ContainerNotStarted", "NodeNotScrapedYet", "NotReported", "FirstSample", "TooYoung":
		default:
			f.t.Errorf("%s: weir says %s: %s", row.cause, reason, message)
		}
		return errors.New(message)
	})
	row.took, row.got, row.want = time.Since(began), strings.Join(said, ", "), strings.Join(said, ", ")
	f.t.Logf("%6.1fs  %s: %s", time.Since(f.began).Seconds(), row.cause, row.got)
	row.passing = true
	f.rows = append(f.rows, row)
}

// report checks that the report of all missing numbers names these nodes by
// their causes. It does not list their pods.
func (f *faults) report() {
	f.t.Helper()
	admin := plugin{f.w, f.w.Kubeconfig()}
	text, err := admin.run(f.t.Context(), "explain", "missing", "-n", f.namespace)
	if err != nil {
		f.t.Error(err)
	}
	f.t.Logf("kubectl weir explain missing -n %s:\n%s", f.namespace, text)
	out, err := admin.run(f.t.Context(), "explain", "missing", "-o", "json")
	if err != nil {
		f.t.Error(err)
		return
	}
	var report explainapi.ReportDocument
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		f.t.Fatal(err)
	}
	for name, reason := range map[string]string{"node/no-address": "NodeNoAddress", "node/another-answers": "NodeWrongIdentity"} {
		if !slices.ContainsFunc(report.Causes, func(c explain.MissingCause) bool { return c.Reason == reason && slices.Contains(c.Names, name) }) {
			f.t.Errorf("explain missing does not have %s for %s: %+v", reason, name, report.Causes)
		}
	}
}

// node injects the faults of the real node. While the node is not ready, no
// Service leads to its pods, so requests go directly to weir's pod. A weir that
// has never read the node has no last known values, so it reports at once what
// another weir reports when its last known values are stale.
func (f *faults) node() {
	w, t := f.w, f.t
	restarts := func(component string) {
		if err := w.RestartComponent(context.Background(), component); err != nil {
			t.Error(err)
		}
	}
	itself := w.itself(t)
	t.Cleanup(func() { // other tests need a node that is ready
		_, stderr, err := w.Kubectl(context.Background(), "wait", "--for=condition=Ready", "node/"+w.Node(), "--timeout=60s")
		if err != nil {
			t.Errorf("%v: %s", err, stderr)
		}
	})

	f.ends("kubelet")
	f.expect("the kubelet has ended", "steady", "NodeUnreachable", w.another(t, "weir-unreachable", anotherWeirPort+1), resolution)
	restarts("kubelet")
	f.nodeIs(corev1.ConditionTrue)

	f.ends("containerd")
	without := w.another(t, "weir-scrape-error", anotherWeirPort+2)
	f.expectOneOf("the container runtime has ended", "steady", "reports that it could not collect", without,
		"NodeScrapeError", "NodeNotReady") // which one depends on whether the API server knows it yet
	f.nodeIs(corev1.ConditionFalse)
	f.expect("the container runtime has ended, and the node is not ready", "steady", "NodeNotReady", without, resolution)
	restarts("containerd")
	f.nodeIs(corev1.ConditionTrue)

	if err := w.PauseProcess("kubelet"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { restarts("kubelet") })
	f.expect("the kubelet does not answer", "steady", "NodeTimeout", w.another(t, "weir-timeout", anotherWeirPort+3), resolution+10*time.Second)
	f.nodeIs(corev1.ConditionUnknown)
	f.expect("the kubelet has not answered for a minute", "steady", "NodeNotReady", itself, 90*time.Second)

	restore := f.withdraw("nodes/metrics", "nodes/stats")
	restarts("kubelet") // the kubelet caches weir's rights for five minutes
	f.nodeIs(corev1.ConditionTrue)
	f.expect("weir may not read kubelets any more", "steady", "NodeUnauthorized", itself, resolution)
	f.announced(hpaevents.MetricsMissing, "The only pod has no CPU or memory")
	restore()
	f.expect("all is well again", "steady", "Measured", itself, 90*time.Second)
	f.announced(hpaevents.MetricsComplete, "")
}

// announced waits for an Event on the autoscaler, as kubectl describe shows it.
// The node has not answered for longer than weir waits before the first Event,
// but there is at least a minute between two Events.
func (f *faults) announced(reason, note string) {
	f.t.Helper()
	of := metav1.ListOptions{FieldSelector: "involvedObject.kind=HorizontalPodAutoscaler,involvedObject.name=scaled,reason=" + reason}
	took := eventually(f.t, "weir announces "+reason, 2*time.Minute, func() error {
		events, err := f.w.kube.CoreV1().Events(f.namespace).List(f.t.Context(), of)
		if err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; strings.Contains(e.Message, note) {
				f.t.Logf("%s on the autoscaler: %s", reason, e.Message)
				return nil
			}
		}
		return fmt.Errorf("there are %d such Events, none with %q", len(events.Items), note)
	})
	f.t.Logf("%6.1fs  %s after %.0fs", time.Since(f.began).Seconds(), reason, took.Seconds())
}

// ends stops a component of the node. It is started again at the end of the
// test.
func (f *faults) ends(component string) {
	f.t.Helper()
	if err := f.w.KillProcess(f.t.Context(), component); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		for _, s := range f.w.Status(context.Background()) {
			if s.Name == component && s.Problem != "" {
				if err := f.w.RestartComponent(context.Background(), component); err != nil {
					f.t.Error(err)
				}
			}
		}
	})
}

// withdraw removes resources from the rights of the account that reads kubelets. restore gives
// them back; the end of the test does the same.
func (f *faults) withdraw(resources ...string) (restore func()) {
	f.t.Helper()
	roles := f.w.kube.RbacV1().ClusterRoles()
	role, err := roles.Get(f.t.Context(), "weir:kubelet-reader", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	was := role.DeepCopy().Rules
	for i := range role.Rules {
		role.Rules[i].Resources = slices.DeleteFunc(role.Rules[i].Resources, func(r string) bool { return slices.Contains(resources, r) })
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) == 0 && len(r.NonResourceURLs) == 0 })
	if role, err = roles.Update(f.t.Context(), role, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		role.Rules = was
		if _, err := roles.Update(context.Background(), role, metav1.UpdateOptions{}); err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(restore)
	return restore
}
