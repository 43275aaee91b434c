//go:build e2e

package apis

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/resizecmd"
	"github.com/weir-metrics/weir/test/cluster/harness"
)

// resizer runs `weir resize` with a weir that reads throttled time.
type resizer struct {
	w         *testCluster
	namespace string
	options   resizecmd.Options
}

// TestResizeWorkload lowers requests of whole workloads in place, and forces what has to undo that.
func TestResizeWorkload(t *testing.T) {
	w := sharedCluster
	w.resourceMetricsFrom(t, ours)
	const name, port = "weir-resizer", anotherWeirPort + 40
	w.another(t, name, port, "endpoint=cadvisor")
	to := w.to(w.NodeIP().String(), port)
	client, err := rest.HTTPClientFor(to)
	if err != nil {
		t.Fatal(err)
	}
	r := &resizer{w: w, namespace: w.namespace(t, "resizes"), options: resizecmd.Options{
		Connect: func() (resizecmd.Asker, error) { return cli.NewWeir(to.Host, client, cli.Advised) },
		Cluster: func() (resizecmd.Pods, error) { return cli.NewKube(w.config) },
	}}
	app := container("app", "serve", "--millicores=5", fmt.Sprintf("--bytes=%d", 20*mebi))
	app.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("200Mi")}
	limited := *app.DeepCopy()
	limited.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("150m")}
	for _, d := range []string{"web", "scaled", "grows"} {
		w.deployment(t, r.namespace, d, app)
	}
	w.deployment(t, r.namespace, "held", limited)
	w.kubectl(t, "scale", "deployment", "web", "scaled", "-n", r.namespace, "--replicas=2")
	r.createSets(t, app)
	r.createManaged(t)
	two := int32(2)
	hpa := following("scaled", 4, onCPU(50))
	hpa.MinReplicas = &two
	w.autoscale(t, r.namespace, "scaled", hpa)
	for _, of := range []string{"deployment/web", "deployment/scaled", "deployment/grows", "deployment/held", "deployment/managed", "statefulset/ordered", "daemonset/each"} {
		w.kubectl(t, "rollout", "status", of, "-n", r.namespace, "--timeout=120s")
	}

	t.Run("owned by Argo CD", r.testManaged)
	t.Run("sets", r.testSets)
	t.Run("hurt", func(t *testing.T) { // these need no recommendation, and so no history
		t.Run("memory", func(t *testing.T) { t.Parallel(); r.testMemory(t) })
		t.Run("throttled", func(t *testing.T) { t.Parallel(); r.testThrottled(t) })
	})
	t.Run("without a restart", r.testInPlace)
	t.Run("beside an HPA", r.testBesideHPA)
}

// createSets creates a StatefulSet of two pods and a DaemonSet.
func (r *resizer) createSets(t *testing.T, c corev1.Container) {
	t.Helper()
	two, p := int32(2), pod("ordered", c)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
	selector := &metav1.LabelSelector{MatchLabels: p.Labels}
	ordered := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "ordered"}, Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector, Template: template, PodManagementPolicy: appsv1.ParallelPodManagement}}
	if _, err := r.w.kube.AppsV1().StatefulSets(r.namespace).Create(t.Context(), ordered, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	template.Labels = map[string]string{"app": "each"}
	each := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "each"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
	if _, err := r.w.kube.AppsV1().DaemonSets(r.namespace).Create(t.Context(), each, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createManaged creates the Deployment managed as Argo CD does.
func (r *resizer) createManaged(t *testing.T) {
	t.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"managed","namespace":%q},"spec":{"selector":{"matchLabels":{"app":"managed"}},"template":{`+
		`"metadata":{"labels":{"app":"managed"}},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"app","image":%q,"imagePullPolicy":"Never","args":["pause"],"resources":{"requests":{"cpu":"50m","memory":"100Mi"}}}]}}}}`,
		r.namespace, harness.WorkloadImage)
	yes := true
	err := r.w.kube.AppsV1().RESTClient().Patch("application/apply-patch+yaml").Namespace(r.namespace).Resource("deployments").Name("managed").
		VersionedParams(&metav1.PatchOptions{FieldManager: "argocd-controller", Force: &yes}, metav1.ParameterCodec).Body([]byte(manifest)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}

// output is what a command has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// apply runs `weir resize apply KIND/NAME` and returns its exit status.
func (r *resizer) apply(ctx context.Context, out *output, of string, args ...string) int {
	return cli.Main(ctx, resizecmd.NewCommand(r.options), append([]string{"apply", r.namespace + "/" + of}, args...), out, out)
}

// pods returns the pods of an app.
func (r *resizer) pods(t *testing.T, app string) []corev1.Pod {
	t.Helper()
	return r.w.podsOf(t, r.namespace, "app="+app)
}

// unchanged checks that the pods are those of before, not restarted, and have these requests.
func (r *resizer) unchanged(t *testing.T, app string, before []corev1.Pod, cpu, memory string) {
	t.Helper()
	after := r.pods(t, app)
	if len(after) != len(before) {
		t.Fatalf("%s has %d pods, and had %d", app, len(after), len(before))
	}
	ids := map[string]string{}
	for _, p := range before {
		ids[string(p.UID)] = p.Status.ContainerStatuses[0].ContainerID
	}
	for _, p := range after {
		status := p.Status.ContainerStatuses[0]
		if ids[string(p.UID)] != status.ContainerID || status.RestartCount != 0 {
			t.Errorf("pod %s is another, or was restarted: container %s, restarts %d", p.Name, status.ContainerID, status.RestartCount)
		}
		for name, want := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if got := status.AllocatedResources[name]; want != "" && got.Cmp(resource.MustParse(want)) != 0 {
				t.Errorf("pod %s: %s allocated %s, want %s", p.Name, name, got.String(), want)
			}
		}
	}
}

// template checks the requests of a template, and that nothing was left held back.
func (r *resizer) template(t *testing.T, kind, name, cpu, memory string) {
	t.Helper()
	got := r.w.kubectl(t, "get", kind, name, "-n", r.namespace, "-o",
		"jsonpath={.spec.template.spec.containers[0].resources.requests.cpu} {.spec.template.spec.containers[0].resources.requests.memory} {.spec.paused}{.spec.updateStrategy.type}")
	held := map[string]string{"statefulset": "RollingUpdate", "daemonset": "RollingUpdate"}[kind]
	if want := strings.TrimSpace(cpu + " " + memory + " " + held); strings.TrimSpace(got) != want {
		t.Errorf("the template of %s %s has %q, want %q", kind, name, got, want)
	}
}

// testInPlace follows a recommendation, and scales up: the new pod has the new requests.
func (r *resizer) testInPlace(t *testing.T) {
	before := r.pods(t, "web")
	var out *output
	eventually(t, "a recommendation", 90*time.Second, func() error {
		out = &output{}
		if status := r.apply(t.Context(), out, "deployment/web", "--min-history=20s"); status != 0 || strings.Count(out.String(), "→") != 6 {
			return fmt.Errorf("exit status %d: %s", status, out)
		}
		return nil
	})
	t.Log(out)
	r.unchanged(t, "web", before, "100m", "200Mi")
	r.template(t, "deployment", "web", "100m", "200Mi")

	out = &output{}
	status := r.apply(t.Context(), out, "deployment/web", "--container=app", "--cpu=30m", "--memory=64Mi", "--yes", "--watch=0")
	t.Log(out)
	if status != 0 {
		t.Fatalf("exit status %d", status)
	}
	r.template(t, "deployment", "web", "30m", "64Mi")
	r.w.kubectl(t, "rollout", "status", "deployment/web", "-n", r.namespace, "--timeout=60s")
	r.unchanged(t, "web", before, "30m", "64Mi")
	if sets := r.w.kubectl(t, "get", "replicasets", "-l", "app=web", "-n", r.namespace, "-o", "name"); strings.Count(sets, "\n") != 1 {
		t.Errorf("a rollout was started: %s", sets)
	}
	r.w.kubectl(t, "scale", "deployment", "web", "-n", r.namespace, "--replicas=3")
	r.w.kubectl(t, "rollout", "status", "deployment/web", "-n", r.namespace, "--timeout=60s")
	for _, p := range r.pods(t, "web") {
		if got := p.Spec.Containers[0].Resources.Requests.Memory().String(); got != "64Mi" {
			t.Errorf("pod %s requests %s of memory, want 64Mi", p.Name, got)
		}
	}
	// The printed command takes it back, also in the new pod.
	before = r.pods(t, "web")
	out = &output{}
	if status := r.apply(t.Context(), out, "deployment/web", "--container=app", "--cpu=100m", "--memory=200Mi", "--yes", "--watch=0"); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	r.unchanged(t, "web", before, "100m", "200Mi")
	r.template(t, "deployment", "web", "100m", "200Mi")
}

// testSets lowers requests of a StatefulSet and of a DaemonSet.
func (r *resizer) testSets(t *testing.T) {
	for kind, name := range map[string]string{"statefulset": "ordered", "daemonset": "each"} {
		before := r.w.podsOf(t, r.namespace, "app="+name)
		out := &output{}
		status := r.apply(t.Context(), out, kind+"/"+name, "--cpu=30m", "--memory=64Mi", "--yes", "--watch=0")
		t.Log(out)
		if status != 0 {
			t.Errorf("%s: exit status %d", kind, status)
		}
		r.template(t, kind, name, "30m", "64Mi")
		r.w.kubectl(t, "rollout", "status", kind+"/"+name, "-n", r.namespace, "--timeout=60s")
		r.unchanged(t, name, before, "30m", "64Mi")
	}
}

// testManaged shows that a template that Argo CD owns is not touched, nor its pods.
func (r *resizer) testManaged(t *testing.T) {
	before, out := r.pods(t, "managed"), &output{}
	status := r.apply(t.Context(), out, "deployment/managed", "--memory=64Mi", "--yes")
	t.Log(out)
	if status == 0 || !strings.Contains(out.String(), "Argo CD") || !strings.Contains(out.String(), "memory: 64Mi") {
		t.Errorf("exit status %d, want an error that names Argo CD, and the patch: %s", status, out)
	}
	r.unchanged(t, "managed", before, "50m", "100Mi")
	r.template(t, "deployment", "managed", "50m", "100Mi")
}

// forced applies a change, has the pod use more while it is watched, and returns the output.
// The change must be undone within a minute.
func (r *resizer) forced(t *testing.T, app, load string, args ...string) string {
	t.Helper()
	before := r.pods(t, app)
	out, status := &output{}, make(chan int, 1)
	go func() {
		status <- r.apply(t.Context(), out, "deployment/"+app, append(args, "--yes", "--watch=3m")...)
	}()
	eventually(t, "the change is watched", time.Minute, func() error {
		if !strings.Contains(out.String(), "Watching for") {
			return fmt.Errorf("only: %s", out)
		}
		return nil
	})
	if _, err := get(t.Context(), fmt.Sprintf("http://%s:8080/%s", before[0].Status.PodIP, load)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case code := <-status:
		t.Logf("undone after %v:\n%s", time.Since(began).Round(time.Second), out)
		if took := time.Since(began); code != 3 || took > time.Minute {
			t.Errorf("exit status %d after %v, want 3 within a minute", code, took)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("not undone: %s", out)
	}
	r.unchanged(t, app, before, "100m", "200Mi")
	r.template(t, "deployment", app, "100m", "200Mi")
	return out.String()
}

func (r *resizer) testMemory(t *testing.T) {
	out := r.forced(t, "grows", fmt.Sprintf("hold?bytes=%d", 100*mebi), "--memory=64Mi")
	if !strings.Contains(out, "of memory, more than the 64Mi") {
		t.Errorf("the reason is not memory above the request: %s", out)
	}
}

// testThrottled changes only memory: CPU above a changed request could be the first sign otherwise.
func (r *resizer) testThrottled(t *testing.T) {
	out := r.forced(t, "held", "burn?millicores=900", "--memory=100Mi")
	if !strings.Contains(out, "the CPU limit holds back threads") {
		t.Errorf("the reason is not the CPU limit: %s", out)
	}
}

// testBesideHPA shows that an HPA on CPU does not scale: its request stays, and memory shrinks.
func (r *resizer) testBesideHPA(t *testing.T) {
	r.w.knowsCPU(t, r.namespace, "scaled")
	before, out := r.pods(t, "scaled"), &output{}
	status := r.apply(t.Context(), out, "deployment/scaled", "--min-history=20s", "--yes", "--watch=30s")
	t.Log(out)
	if status != 0 {
		t.Fatalf("exit status %d", status)
	}
	r.unchanged(t, "scaled", before, "100m", "")
	if memory := r.pods(t, "scaled")[0].Spec.Containers[0].Resources.Requests.Memory(); memory.Cmp(resource.MustParse("200Mi")) >= 0 {
		t.Errorf("the memory request is %s, want less than 200Mi", memory)
	}
	hpa, err := r.w.kube.AutoscalingV2().HorizontalPodAutoscalers(r.namespace).Get(t.Context(), "scaled", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if hpa.Status.LastScaleTime != nil || hpa.Status.DesiredReplicas != 2 {
		t.Errorf("the HPA scaled at %v, and wants %d replicas", hpa.Status.LastScaleTime, hpa.Status.DesiredReplicas)
	}
	refused := &output{}
	if status := r.apply(t.Context(), refused, "deployment/scaled", "--cpu=50m", "--yes"); status == 0 || !strings.Contains(refused.String(), "HPA scaled") {
		t.Errorf("a request that an HPA scales by: exit status %d, %s", status, refused)
	}
}
