package resizecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

var now = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixture is a cluster with kubelets that resize at once, and the weir that measures it.
type fixture struct {
	pods  map[string]*corev1.Pod
	agent bool // whether nodes have agents
	// obeys says whether kubelets resize. If not, they report that they cannot.
	obeys bool
	// forbids says that the user has no right to resize.
	forbids bool
	// objects are what the API server has besides pods, by their path.
	objects map[string]any
	// oom has a container killed while a change is watched. rollouts counts those that were started.
	oom      bool
	rollouts int
	// unread are the cgroups that weir does not read, as NODE/CGROUP or CGROUP.
	unread []string
	// memory is what each container of web uses from the second look on; 50Mi if it is empty.
	grows, memory string
}

// addWeb adds a Deployment of two pods, one of which was resized in place, its HPA, and its namespace's
// LimitRange.
func (w *fixture) addWeb() {
	web := container("web", "400m", "256Mi", "", "")
	for i, name := range []string{"web-5d4f8c7b9-x2x2x", "web-5d4f8c7b9-z9z9z"} {
		c := *web.DeepCopy()
		if i == 1 {
			c.Resources.Requests[corev1.ResourceMemory] = quantity("64Mi")
		}
		p := pod("blog/"+name, "n1", c, container("proxy", "100m", "64Mi", "", ""))
		p.Labels = map[string]string{"pod-template-hash": "5d4f8c7b9"}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: "uid-of-set", Controller: new(true)}}
		p.Labels["app"] = "web"
		w.pods["blog/"+name] = p
	}
	two, labels := int32(2), map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{web}}}
	web1 := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "web", UID: "uid-of-web", Generation: 1},
		Spec:   appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2}}
	w.objects[deploymentPath] = web1
	w.objects[replicaSetPath] = &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "web-5d4f8c7b9", UID: "uid-of-set", OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "uid-of-web", Controller: new(true)}}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &two, Template: *template.DeepCopy()}}
	w.objects["/api/v1/namespaces/blog/limitranges/least"] = corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "least"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: corev1.ResourceList{corev1.ResourceMemory: quantity("96Mi")}}}}}
	w.objects[hpaPath] = autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"},
			MinReplicas: new(int32(1)), MaxReplicas: 10, Metrics: []autoscalingv2.MetricSpec{{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu",
				Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: new(int32(60))}}}}}}
}

// scaleBy gives the HPA of web a behavior, and a metric of a container or a tolerance of zero.
func (w *fixture) scaleBy(what string) {
	hpa := w.objects[hpaPath].(autoscalingv2.HorizontalPodAutoscaler)
	up := &autoscalingv2.HPAScalingRules{SelectPolicy: new(autoscalingv2.MinChangePolicySelect)}
	hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up}
	if what == "no-tolerance" {
		up.Tolerance = new(quantity("0"))
	} else {
		m := &hpa.Spec.Metrics[0]
		m.Type, m.ContainerResource = "ContainerResource", &autoscalingv2.ContainerResourceMetricSource{Name: m.Resource.Name, Container: what, Target: m.Resource.Target}
		m.Resource = nil
	}
	w.objects[hpaPath] = hpa
}

// The objects of the Deployment web.
const (
	hpaPath        = "/apis/autoscaling/v2/namespaces/blog/horizontalpodautoscalers/web"
	deploymentPath = "/apis/apps/v1/namespaces/blog/deployments/web"
	replicaSetPath = "/apis/apps/v1/namespaces/blog/replicasets/web-5d4f8c7b9"
)

// manage has a field manager set the memory request of web.
func (w *fixture) manage(manager string) {
	d := w.objects[deploymentPath].(*appsv1.Deployment)
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(
		`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:resources":{"f:requests":{"f:memory":{}}}}}}}}}`)}}
}

// control does what the Deployment controller does after a change.
func (w *fixture) control() {
	d, set := w.objects[deploymentPath].(*appsv1.Deployment), w.objects[replicaSetPath].(*appsv1.ReplicaSet)
	same := equality.Semantic.DeepEqual(d.Spec.Template, set.Spec.Template)
	if !same && !d.Spec.Paused {
		w.rollouts++
	}
	d.Generation++
	d.Status.ObservedGeneration, d.Status.UpdatedReplicas = d.Generation, 0
	if same {
		d.Status.UpdatedReplicas = d.Status.Replicas
	}
}

// wait stands for the time between two looks at a change.
func (w *fixture) wait(ctx context.Context, _ time.Duration) error {
	if p := w.pods["blog/web-5d4f8c7b9-x2x2x"]; w.oom && p != nil {
		p.Status.ContainerStatuses[0].RestartCount = 1
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
	}
	w.memory = w.grows
	return ctx.Err()
}

func newFixture() *fixture {
	cart := map[string]any{"metadata": metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, "spec": map[string]any{"template": corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{container("app", "500m", "512Mi", "1", "1Gi"), container("log", "50m", "32Mi", "", "")}}}}}
	w := &fixture{pods: map[string]*corev1.Pod{}, agent: true, obeys: true, objects: map[string]any{"/apis/apps/v1/namespaces/shop/statefulsets/cart": cart}}
	for _, p := range []*corev1.Pod{
		pod("shop/cart-0", "n1", container("app", "500m", "512Mi", "1", "1Gi"), container("log", "50m", "32Mi", "", "")),
		pod("shop/cart-1", "n2", container("app", "500m", "512Mi", "1", "1Gi"), container("log", "50m", "32Mi", "", "")),
		pod("shop/db-0", "n2", container("db", "1", "1Gi", "1", "1Gi")),
		pod("bank/vault", "n1", container("vault", "100m", "600Mi", "", "")),
	} {
		w.pods[p.Namespace+"/"+p.Name] = p
	}
	for _, name := range []string{"cart", "db"} {
		for _, p := range w.pods {
			if strings.HasPrefix(p.Name, name+"-") {
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: name, Controller: new(true)}}
			}
		}
	}
	policy := []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
	w.pods["bank/vault"].Spec.Containers[0].ResizePolicy = policy
	return w
}

func container(name, cpu, memory, cpuLimit, memoryLimit string) corev1.Container {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				l[name] = quantity(text)
			}
		}
		return l
	}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(cpuLimit, memoryLimit)}}
}

func pod(ref, node string, containers ...corev1.Container) *corev1.Pod {
	namespace, name, _ := strings.Cut(ref, "/")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "7", Generation: 1},
		Spec:       corev1.PodSpec{NodeName: node, Containers: containers},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, ObservedGeneration: 1},
	}
	p.Status.QOSClass = corev1.PodQOSClass(resize.ClassOf(resize.FromPod(p)))
	for i := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: containers[i].Name, ContainerID: fmt.Sprintf("containerd://5f6197a9c1c9e66318d5b10e%d", i),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	obey(p)
	return p
}

// obey resizes a pod as a kubelet does.
func obey(p *corev1.Pod) {
	p.Status.ObservedGeneration = p.Generation
	for i := range p.Spec.Containers {
		r := p.Spec.Containers[i].Resources.DeepCopy()
		p.Status.ContainerStatuses[i].Resources, p.Status.ContainerStatuses[i].AllocatedResources = r, r.Requests
	}
}

// pods are those of a cluster, with other objects.
type pods struct {
	kubernetes.Interface
	w *fixture
}

func (p pods) Get(_ context.Context, path string, into any) error {
	o, ok := p.w.objects[path]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("objects"), path)
	}
	return copyJSON(o, into)
}

// Patch merges a patch into an object of the Deployment web.
func (p pods) Patch(_ context.Context, path string, patch []byte, o metav1.PatchOptions, into any) error {
	old, err := json.Marshal(p.w.objects[path])
	if err != nil {
		return err
	}
	var kind any = &appsv1.Deployment{}
	if path == replicaSetPath {
		kind = &appsv1.ReplicaSet{}
	}
	merged, err := strategicpatch.StrategicMergePatch(old, patch, kind)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(merged, kind); err != nil {
		return err
	}
	if len(o.DryRun) > 0 {
		return copyJSON(kind, into)
	}
	p.w.objects[path] = kind
	p.w.control()
	return copyJSON(p.w.objects[path], into)
}

var inNamespace = regexp.MustCompile("/namespaces/[a-z]+")

// List returns one object a page.
func (p pods) List(_ context.Context, path string, o metav1.ListOptions, into any) error {
	if p.w.forbids {
		return apierrors.NewForbidden(corev1.Resource("limitranges"), "", errors.New(`User "eve" cannot list them`))
	}
	var found []any
	if folder, ok := strings.CutSuffix(path, "/pods"); ok {
		for _, ref := range slices.Sorted(maps.Keys(p.w.pods)) {
			switch pod := p.w.pods[ref]; {
			case strings.Contains(folder, "/namespaces/") && !strings.HasSuffix(folder, "/"+pod.Namespace):
			case strings.HasPrefix(path, "/api/v1/"):
				found = append(found, pod)
			default:
				found = append(found, map[string]any{"metadata": pod.ObjectMeta, "timestamp": now, "containers": []any{map[string]any{"name": "web", "usage": map[string]string{"cpu": "100m", "memory": cmp.Or(p.w.memory, "50Mi")}}}})
			}
		}
		return copyJSON(map[string]any{"items": found}, into)
	}
	for _, at := range slices.Sorted(maps.Keys(p.w.objects)) {
		folder := at[:strings.LastIndex(at, "/")]
		if folder == path || inNamespace.ReplaceAllString(folder, "") == path {
			found = append(found, p.w.objects[at])
		}
	}
	skip := len(o.Continue)
	list := map[string]any{"items": found[min(skip, len(found)):min(skip+1, len(found))]}
	if skip+1 < len(found) {
		list["metadata"] = map[string]string{"continue": o.Continue + "x"}
	}
	return copyJSON(list, into)
}

func copyJSON(from, into any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (p pods) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return p.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (p pods) ResizePod(ctx context.Context, namespace, name string, patch []byte, o metav1.PatchOptions) (*corev1.Pod, error) {
	return p.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, o, "resize")
}

// client returns the cluster's client. After a patch, a pod is resized when it is next read.
func (w *fixture) client() kubernetes.Interface {
	client := fake.NewClientset()
	client.PrependReactor("*", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, patches := a.(clienttesting.PatchActionImpl)
		name := patch.Name
		if get, ok := a.(clienttesting.GetActionImpl); ok {
			name = get.Name
		}
		p := w.pods[a.GetNamespace()+"/"+name]
		if p == nil {
			return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
		}
		if !patches {
			switch {
			case w.obeys:
				obey(p)
			case p.Generation > 1 && equality.Semantic.DeepEqual(p.Spec.Containers[0].Resources.Requests, p.Status.ContainerStatuses[0].AllocatedResources):
				p.Status.Conditions = nil
				obey(p)
			case p.Generation > 1:
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
					Message: "In-place resize of containers with swap is not supported.", ObservedGeneration: p.Generation}}
			}
			return true, p.DeepCopy(), nil
		}
		if w.forbids {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods/resize"), name, errors.New(`User "eve" cannot patch resource "pods/resize"`))
		}
		old, _ := json.Marshal(p)
		merged, err := strategicpatch.StrategicMergePatch(old, patch.Patch, corev1.Pod{})
		if err != nil {
			return true, nil, err
		}
		to := &corev1.Pod{}
		if err := json.Unmarshal(merged, to); err != nil {
			return true, nil, err
		}
		if len(patch.PatchOptions.DryRun) == 0 {
			to.Generation++
			w.pods[a.GetNamespace()+"/"+name] = to
		}
		return true, to.DeepCopy(), nil
	})
	return client
}

// PastContainers yields an earlier pod of the StatefulSet cart, and one of the Deployment web.
func (w *fixture) PastContainers(namespace metric.Namespace) iter.Seq[metric.Entity] {
	return func(yield func(metric.Entity) bool) {
		for _, e := range []metric.Entity{{Namespace: "blog", Pod: "web-7f7f7f7f7-b4b4b", Name: "web"}, {Namespace: "shop", Pod: "cart-2", Name: "app"}, {Namespace: "shop", Pod: "old-0", Name: "app"}} {
			e.Kind, e.Node = metric.Container, "n1"
			if (namespace == "" || e.Namespace == namespace) && !yield(e) {
				return
			}
		}
	}
}

// Points returns fifteen minutes of readings of every entity.
func (w *fixture) Points(e metric.Entity, id metric.ID, _, _ time.Time) iter.Seq2[time.Time, float64] {
	used := map[string][2]float64{"app": {0.062e9, 180 << 20}, "log": {0.041e9, 29 << 20}, "db": {0.2e9, 400 << 20}, "vault": {0.02e9, 100 << 20}, "web": {0.1e9, 50 << 20}, "proxy": {0.01e9, 20 << 20}}[e.Name]
	if e.Pod == "cart-2" && e.Name == "app" {
		used[1] = 300 << 20 // an earlier pod had the highest peak
	}
	return func(yield func(time.Time, float64) bool) {
		for at := now.Add(-15 * time.Minute); at.Before(now); at = at.Add(15 * time.Second) {
			value := used[0]
			if id == metric.MemoryWorkingSet {
				value = used[1]
			}
			if !yield(at, value) {
				return
			}
		}
	}
}

// facts returns the facts of the pods, converted by package informer.
func (w *fixture) facts() *cluster.Facts {
	list := &corev1.PodList{}
	for _, p := range w.pods {
		list.Items = append(list.Items, *p)
	}
	return informer.FactsFromList(&corev1.NodeList{}, list, now)
}

// addNodes adds the nodes. n3 is smaller.
func (w *fixture) addNodes() {
	for _, name := range []string{"n1", "n2", "n3"} {
		list := func(cpu, memory string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: quantity(cpu), corev1.ResourceMemory: quantity(memory)}
		}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: list("4", "8Gi"), Allocatable: list("4", "8092Mi")}}
		if name == "n3" {
			n.Status = corev1.NodeStatus{Capacity: list("2", "4Gi"), Allocatable: list("1800m", "2996Mi")}
		}
		w.objects["/api/v1/nodes/"+name] = n
	}
	w.pods["shop/batch"] = pod("shop/batch", "n1", container("job", "2", "6Gi", "", ""))
}

// List answers as weir with a kubelet source that reads /stats/summary: readings in the last fifteen minutes.
func (a asker) List(_ context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	list := &usage.List{}
	for _, node := range []string{"n1", "n2", "n3"} {
		for name, used := range map[string][2]float64{"": {900, 3000}, "pods": {500, 2000}, "kubelet": {60, 120}, "runtime": {40, 80}} {
			if (name == "") != (r == usage.Nodes) || r == usage.Cgroups && q.Name != name || q.Node != "" && q.Node != node ||
				slices.Contains(a.w.unread, name) || slices.Contains(a.w.unread, node+"/"+name) {
				continue
			}
			it := usage.Item{Node: metric.NodeName(node), Cgroup: metric.CgroupPath(name), Readings: &usage.Readings{}}
			for i := range 60 {
				at, cpu, memory := now.Add(time.Duration(i-60)*15*time.Second), used[0], used[1]
				if node == "n2" && (name == "" || name == "runtime") && i == 30 {
					cpu, memory = cpu+200, memory+30 // a peak of the runtime
				}
				it.Readings.CPU = append(it.Readings.CPU, usage.Reading{Time: at, Value: cpu * 1e6})
				it.Readings.Memory = append(it.Readings.Memory, usage.Reading{Time: at, Value: memory * (1 << 20)})
			}
			list.Items = append(list.Items, it)
		}
	}
	return list, nil
}

// asker is the weir of the cluster.
type asker struct {
	*cli.Weir
	w *fixture
}

// Slow answers as weir does for a node with cgroups of version 1.
func (a asker) Slow(_ context.Context, q slow.Query) (*slow.Report, error) {
	none := 0.0
	return &slow.Report{Pods: []slow.Slow{{Namespace: string(q.Namespace), Pod: string(q.Pod), Stalls: []slow.Stall{{Resource: slow.CPU, Throttled: &none}},
		NotKnown: []string{"node n1 reports no stalls of pods, as with cgroups of version 1."}}}}, nil
}

// Deaths has the kill of given oom.
func (a asker) Deaths(context.Context, death.Query) (*death.Report, error) {
	return &death.Report{Deaths: []death.Death{{Message: "killed by the kernel: it reached its own memory limit of 1Gi"}}}, nil
}

// PodCgroups answers as the agent of a node with cgroups of version 1.
func (a asker) PodCgroups(_ context.Context, node string) (json.RawMessage, error) {
	if !a.w.agent {
		return nil, errors.New("no agent of weir's answers on node " + node)
	}
	var report inspect.Report
	for _, p := range a.w.pods {
		if p.Spec.NodeName != node {
			continue
		}
		of := inspect.PodCgroups{UID: metric.PodUID(p.UID), Driver: podcgroup.Cgroupfs}
		of.Path = metric.CgroupPath("/kubepods/burstable/pod" + string(p.UID))
		for _, c := range p.Spec.Containers {
			shares := c.Resources.Requests.Cpu().MilliValue() * 1024 / 1000
			child := inspect.ContainerReport{Name: c.Name}
			child.Path, child.Limits = of.Path+"/5f6197a9c1c9", &inspect.Limits{Shares: &shares}
			of.Containers = append(of.Containers, child)
		}
		report.Pods = append(report.Pods, of)
	}
	return json.Marshal(report)
}

// command returns the command of a program with the fixture's servers.
func (w *fixture) command(t *testing.T, server *httptest.Server) *cobra.Command {
	root := &cobra.Command{Use: "weir", Args: cli.Subcommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	root.AddCommand(NewCommand(Options{
		Connect: func() (Asker, error) {
			weir, err := cli.Direct(server.URL, false)
			return asker{weir, w}, err
		},
		Cluster: func() (Pods, error) { return pods{w.client(), w}, nil },
		Wait:    w.wait,
	}))
	return root
}

// varying matches what differs between two runs.
var varying = regexp.MustCompile(`took [0-9.]+[µm]?s|done in [0-9.]+[µm]?s|"tookSeconds": [0-9.e-]+`)

// The transcripts are the input and output that a user sees. A line that begins with "given"
// changes the fixture first.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" {
			return // a file that a command reads
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w := newFixture()
			handler := resizeapi.NewHandler(resizeapi.Options{Usage: func() resizeapi.UsageReader { return w }, Facts: w.facts, Now: func() time.Time { return now },
				Pod: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
					return w.client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
				}})
			mux := http.NewServeMux()
			for _, path := range resizeapi.Paths() {
				mux.Handle(path, handler)
			}
			server := httptest.NewServer(mux)
			defer server.Close()
			var out bytes.Buffer
			for line := range strings.Lines(d.Input) {
				switch words := strings.Fields(line); words[0] {
				case "given":
					if words[1] == "web" {
						w.addWeb()
					}
					w.agent = w.agent && words[1] != "no-agent"
					w.obeys = w.obeys && words[1] != "infeasible"
					w.forbids = w.forbids || words[1] == "forbidden"
					w.oom = w.oom || words[1] == "oom"
					switch words[1] {
					case "nodes":
						w.addNodes()
					case "many":
						for i := range 20 {
							n := *w.objects["/api/v1/nodes/n1"].(*corev1.Node)
							n.Name = fmt.Sprintf("n1%02d", i)
							n.Status.Allocatable = corev1.ResourceList{"cpu": quantity("4"), "memory": quantity("8Gi")}
							w.objects["/api/v1/nodes/"+n.Name] = &n
						}
					case "unread":
						w.unread = append(w.unread, words[2])
					case "manager":
						w.manage(words[2])
					case "hpa":
						w.scaleBy(words[2])
					case "grows":
						w.grows = words[2]
					case "uses":
						w.memory, w.grows = words[2], words[2]
					}
				case "weir":
					if i := slices.Index(words, "trace.csv"); i > 0 {
						words[i] = filepath.FromSlash("../../../resize/replay/testdata/trace.csv")
					}
					if status := cli.Main(t.Context(), w.command(t, server), words[1:], &out, &out); status != 0 {
						fmt.Fprintf(&out, "exit status %d\n", status)
					}
				default:
					t.Fatalf("%s: what is %q?", d.Pos, line)
				}
			}
			if w.rollouts > 0 {
				fmt.Fprintf(&out, "%d rollouts were started\n", w.rollouts)
			}
			return varying.ReplaceAllStringFunc(out.String(), func(s string) string { return strings.TrimRight(s, "0123456789. s") + " ..." })
		})
	})
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }
