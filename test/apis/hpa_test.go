//go:build e2e

package apis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deployment creates a Deployment of one replica.
func (w *testCluster) deployment(t *testing.T, namespace, name string, c corev1.Container) {
	t.Helper()
	one, p := int32(1), pod(name, c)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one,
			Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec},
		},
	}
	if _, err := w.kube.AppsV1().Deployments(namespace).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// following returns the specification of an autoscaler that scales a Deployment
// by metrics, without stabilization.
func following(name string, most int32, metrics ...autoscalingv2.MetricSpec) autoscalingv2.HorizontalPodAutoscalerSpec {
	one, none := int32(1), int32(0)
	return autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
		MinReplicas:    &one, MaxReplicas: most,
		Metrics: metrics,
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &none},
		},
	}
}

// onCPU returns a metric: this percentage of the CPU request.
func onCPU(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
			Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent,
		}},
	}
}

// autoscale creates a HorizontalPodAutoscaler.
func (w *testCluster) autoscale(t *testing.T, namespace, name string, spec autoscalingv2.HorizontalPodAutoscalerSpec) {
	t.Helper()
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(t.Context(), h, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// knowsCPU waits until the cluster's own controller has a number for an
// autoscaler on CPU.
func (w *testCluster) knowsCPU(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "the autoscaler of "+name+" knows the CPU", 2*time.Minute, func() error {
		h, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return knownCPU(h.Status.CurrentMetrics)
	})
}

// knownCPU returns an error if an autoscaler's status has no utilization.
func knownCPU(current []autoscalingv2.MetricStatus) error {
	if len(current) == 0 || current[0].Resource == nil || current[0].Resource.Current.AverageUtilization == nil {
		return fmt.Errorf("its status has %+v", current)
	}
	return nil
}

// reaches waits until the controller has scaled the Deployment to this number
// of replicas, and returns how long that took.
func (w *testCluster) reaches(t *testing.T, namespace, name string, replicas int32) time.Duration {
	t.Helper()
	return eventually(t, fmt.Sprintf("%s is scaled to %d", name, replicas), 3*time.Minute, func() error {
		d, err := w.kube.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if *d.Spec.Replicas == replicas {
			return nil
		}
		h, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return fmt.Errorf("it has %d replicas; %+v", *d.Spec.Replicas, h.Status.Conditions)
	})
}

// addressOf waits until a pod of an app is ready, and returns its address.
func (w *testCluster) addressOf(t *testing.T, namespace, app string) (ip string) {
	t.Helper()
	eventually(t, "a pod of "+app+" runs", time.Minute, func() error {
		pods, err := w.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready {
				ip = p.Status.PodIP
				return nil
			}
		}
		return fmt.Errorf("%d pods, none is ready", len(pods.Items))
	})
	return ip
}

// TestHPAOnCPU checks that the cluster's own autoscaler follows a load up and
// down, with weir's metrics and with metrics-server's.
func TestHPAOnCPU(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	const cycles = 2 // a change falls at different times between two reads
	type times struct{ up, down time.Duration }
	scale := func(t *testing.T, namespace string) (took times) {
		w.namespace(t, namespace)
		app := container("app", "serve", "--listen=:8080")
		app.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("100m")
		w.deployment(t, namespace, "web", app)
		w.autoscale(t, namespace, "web", following("web", 4, onCPU(50)))
		w.knowsCPU(t, namespace, "web")
		for range cycles {
			// 140m of the 100m request are used: 140% of one replica, 47% of three.
			if err := w.settle(t.Context(), namespace, "web"); err != nil {
				t.Fatal(err)
			}
			ip := w.addressOf(t, namespace, "web")
			visit(t, ip, "/burn?millicores=140")
			took.up += w.reaches(t, namespace, "web", 3) / cycles
			visit(t, ip, "/burn?millicores=0")
			took.down += w.reaches(t, namespace, "web", 1) / cycles
		}
		return took
	}
	var weir, peer times
	t.Run("weir", func(t *testing.T) {
		w.resourceMetricsFrom(t, ours)
		weir = scale(t, "hpa-weir")
	})
	t.Run("metrics-server", func(t *testing.T) {
		w.resourceMetricsFrom(t, theirs)
		peer = scale(t, "hpa-metrics-server")
	})
	t.Logf("an HPA on CPU, from the change of load to the change of scale:\n"+
		"  weir            up %5.1fs  down %5.1fs\n  metrics-server  up %5.1fs  down %5.1fs",
		weir.up.Seconds(), weir.down.Seconds(), peer.up.Seconds(), peer.down.Seconds())
}

// TestHPAOnPodsMetric checks that the cluster's autoscaler follows a metric
// that metrics-server does not have: the bytes that each pod sends.
func TestHPAOnPodsMetric(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "hpa-pods")
	w.create(t, namespace, pod("server", container("app", "serve", "--listen=:8080")))
	ip := w.addressOf(t, namespace, "server")
	// Each replica sends 40 kB/s, twice the target, so the Deployment is scaled to
	// the maximum.
	w.deployment(t, namespace, "sender", container("app", "traffic", "--to=http://"+ip+":8080/sink", "--bytes-per-second=40000"))
	target := resource.MustParse("20k")
	began := time.Now()
	w.autoscale(t, namespace, "sender", following("sender", 3, autoscalingv2.MetricSpec{
		Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "network_transmit_bytes_per_second"},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &target},
		},
	}))
	w.reaches(t, namespace, "sender", 3)
	t.Logf("an HPA on a Pods metric scales 1 → 3 in %.1fs", time.Since(began).Seconds())
}

// TestHPAOnObjectMetric checks that the cluster's autoscaler follows the sum of
// a namespace.
func TestHPAOnObjectMetric(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "hpa-object")
	w.create(t, namespace, pod("consumer", container("app", "use", "--millicores=60", "--bytes=1048576")))
	w.deployment(t, namespace, "follower", container("app", "pause"))
	target := resource.MustParse("20m")
	began := time.Now()
	w.autoscale(t, namespace, "follower", following("follower", 3, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ObjectMetricSourceType,
		Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Namespace", Name: namespace},
			Metric:          autoscalingv2.MetricIdentifier{Name: "cpu_usage_cores"},
			Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &target},
		},
	}))
	w.reaches(t, namespace, "follower", 3)
	t.Logf("an HPA on an Object metric scales 1 → 3 in %.1fs", time.Since(began).Seconds())
}

// TestHPAOnRules checks that the cluster's autoscaler follows a number that a
// real Prometheus collects, through weir's rules: as an External metric, as one
// of an object, and as one of pods, of which only the first has a series.
func TestHPAOnRules(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "hpa-external")
	w.deployment(t, namespace, "queue", container("app", "serve", "--listen=:8080"))
	ip := w.addressOf(t, namespace, "queue")
	visit(t, ip, "/set?value=1")
	w.prometheus(t, "prometheus", prometheusPort, fmt.Sprintf("static_configs:\n  - targets: [%q]\n    labels: {namespace: %q, queue: orders, pod: %q}",
		ip+":8080", namespace, w.podAt(t, namespace, ip)))
	w.deployment(t, namespace, "worker", container("app", "pause"))
	w.deployment(t, namespace, "clerk", container("app", "pause"))
	target := resource.MustParse("10")
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &target}
	w.autoscale(t, namespace, "queue", following("queue", 5, autoscalingv2.MetricSpec{
		Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "workload_value"}, Target: average},
	}))
	w.autoscale(t, namespace, "clerk", following("clerk", 5, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ObjectMetricSourceType,
		Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Service", Name: "orders"},
			Metric:          autoscalingv2.MetricIdentifier{Name: "waiting"}, Target: average,
		},
	}))
	w.autoscale(t, namespace, "worker", following("worker", 5, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ExternalMetricSourceType,
		External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "queue_depth", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "orders"}}},
			Target: average,
		},
	}))
	eventually(t, "the autoscaler knows the queue's depth", time.Minute, func() error {
		h, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), "worker", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(h.Status.CurrentMetrics) == 0 || h.Status.CurrentMetrics[0].External == nil {
			return fmt.Errorf("its status is %+v", h.Status)
		}
		return nil
	})
	visit(t, ip, "/set?value=40")
	up := w.reaches(t, namespace, "worker", 4)
	w.reaches(t, namespace, "clerk", 4)
	w.reaches(t, namespace, "queue", 4)
	visit(t, ip, "/set?value=10")
	down := w.reaches(t, namespace, "worker", 1)
	w.reaches(t, namespace, "clerk", 1)
	t.Logf("an HPA on an external metric: up %.1fs, down %.1fs after the number changed", up.Seconds(), down.Seconds())
}

// podAt returns the name of the pod with an address.
func (w *testCluster) podAt(t *testing.T, namespace, ip string) string {
	t.Helper()
	pods, err := w.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "status.podIP=" + ip})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("the pod at %s: got %+v, %v", ip, pods, err)
	}
	return pods.Items[0].Name
}

// prometheus runs a Prometheus that scrapes the targets of a discovery until the end of the test.
func (w *testCluster) prometheus(t *testing.T, name string, port int, discovery string) {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("Debian's package prometheus is not installed: apt-get install prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: test\n  " + discovery + "\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("%s:%d", w.NodeIP(), port)
	args := []string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address}
	if err := w.StartProcess(t.Context(), name, path, args, "http://"+address+"/-/ready"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.StopProcess(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
}
