//go:build e2e

package apis

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubectl runs the kubectl commands that people use.
func TestKubectl(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "kubectl")
	w.create(t, namespace, pod("web", container("app", "use", "--millicores=20", "--bytes=33554432"), container("helper", "pause")))
	w.create(t, namespace, pod("db", container("app", "use", "--millicores=10", "--bytes=67108864")))
	serves(t, "the cluster", w.aggregated, namespace, "web/app", "web/helper", "db/app")

	shows := func(pattern string, args ...string) {
		t.Helper()
		out := w.kubectl(t, args...)
		if !regexp.MustCompile(`(?m)` + pattern).MatchString(out) {
			t.Errorf("kubectl %s: no line matches %s in\n%s", strings.Join(args, " "), pattern, out)
		}
	}
	node := regexp.QuoteMeta(w.Node())
	shows(`^`+node+`\s+\d+m\s+\d+%\s+\d+Mi\s+\d+%\s*$`, "top", "nodes")
	shows(`^kubectl\s+web\s+helper\s+\d+m\s+\d+Mi\s*$`, "top", "pods", "--containers", "-A")
	shows(`^weir-system\s+weir-\S+\s+\d+m\s+\d+Mi\s*$`, "top", "pods", "-A")
	shows(`^db\s+\d+m\s+6[4-9]Mi\s*$`, "top", "pod", "-l", "app=db", "-n", namespace)
	shows(`^NAME\s+CPU\s+MEMORY\s+WINDOW`, "get", "podmetrics", "-n", namespace)
	shows(`^web\s+`, "get", "podmetrics", "-n", namespace)
	shows(`^`+node+`\s+`, "get", "nodemetrics")
	shows(`^kind: PodMetrics$`, "get", "podmetrics", "web", "-n", namespace, "-o", "yaml")
	shows(`^metrics\.k8s\.io/v1$`, "api-versions")
	shows(`^metrics\.k8s\.io/v1beta1$`, "api-versions")
	shows(`^FIELDS:$`, "explain", "podmetrics")
	if out := w.kubectl(t, "top", "pod", "-l", "app=db", "-n", namespace); strings.Contains(out, "web") {
		t.Errorf("a label selector lets others through:\n%s", out)
	}

	for _, path := range []string{
		"/apis/metrics.k8s.io/v1",
		"/apis/metrics.k8s.io/v1/nodes",
		"/apis/metrics.k8s.io/v1/namespaces/" + namespace + "/pods/web",
		"/apis/metrics.k8s.io/v1beta1",
		"/apis/metrics.k8s.io/v1beta1/nodes",
		"/apis/metrics.k8s.io/v1beta1/pods",
		"/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods/web",
		"/apis/custom.metrics.k8s.io/v1beta2",
		"/apis/custom.metrics.k8s.io/v1beta1",
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + namespace + "/pods/*/memory_working_set_bytes",
		"/apis/custom.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods/*/memory_working_set_bytes",
		"/apis/custom.metrics.k8s.io/v1beta2/nodes/*/cpu_usage_cores",
		"/apis/external.metrics.k8s.io/v1beta1",
		"/apis/weir.dev/v1alpha1",
		"/apis/weir.dev/v1alpha1/nodes",
		"/apis/weir.dev/v1alpha1/missing",
		"/apis/weir.dev/v1alpha1/nodes/" + w.Node() + "/explanation",
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/containers",
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/pods/web/explanation",
		"/openapi/v2",
		"/openapi/v3/apis/metrics.k8s.io/v1",
		"/openapi/v3/apis/metrics.k8s.io/v1beta1",
	} {
		if out := w.kubectl(t, "get", "--raw", path); !json.Valid([]byte(out)) {
			t.Errorf("get --raw %s: no JSON: %.200s", path, out)
		}
	}
	// The rest of what weir serves is not an aggregated API, and the API server's
	// proxy does not pass on the user. So these requests go directly to weir.
	itself := "--server=https://" + w.podsOf(t, "weir-system", "app.kubernetes.io/name=weir")[0].Status.PodIP + ":10250"
	for _, path := range []string{
		"/api/v1/model/namespaces/" + namespace + "/pods/web/metrics/memory/working_set",
		"/api/v1/metric-export", "/api/v1/metric-export-schema", "/apis/metrics/v1alpha1/nodes",
		"/readyz", "/livez", "/healthz", "/metrics", "/metrics/cluster",
	} {
		if out := w.kubectl(t, itself, "--insecure-skip-tls-verify", "get", "--raw", path); out == "" {
			t.Errorf("%s get --raw %s is empty", itself, path)
		}
	}
}

// TestAbsenceHasAReason asks for numbers that cannot exist. The answer must say
// why.
func TestAbsenceHasAReason(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "absent")
	pending := pod("pending", container("app", "pause"))
	pending.Spec.NodeSelector = map[string]string{"weir.test/nowhere": "true"}
	w.create(t, namespace, pending)
	done := pod("done", container("app", "exit", "--after=0s"))
	done.Spec.RestartPolicy = corev1.RestartPolicyNever
	w.create(t, namespace, done)
	eventually(t, "a pod has ended", time.Minute, func() error {
		p, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), "done", metav1.GetOptions{})
		if err == nil && p.Status.Phase != corev1.PodSucceeded {
			err = fmt.Errorf("it is %s", p.Status.Phase)
		}
		return err
	})
	for name, reason := range map[string]string{
		"pending": "the pod has not started",
		"done":    "the pod has finished",
		"nobody":  `pods "nobody" not found`,
	} {
		eventually(t, "kubectl top pod "+name+" says: "+reason, 10*time.Second, func() error {
			out, stderr, err := w.Kubectl(t.Context(), "get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/"+namespace+"/pods/"+name)
			if err == nil || !strings.Contains(stderr, reason) {
				return fmt.Errorf("it says %q %q", out, stderr)
			}
			return nil
		})
	}
	_, stderr, err := w.Kubectl(t.Context(), "top", "pod", "done", "-n", namespace)
	if err == nil || !strings.Contains(stderr, "the pod has finished") {
		t.Errorf("kubectl top pod done: got %v, %q; want an error with the reason", err, stderr)
	}

	// A node that weir is configured to skip.
	excluded := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ghost", Labels: map[string]string{"weir.test/skip": "true"}}}
	if _, err := w.kube.CoreV1().Nodes().Create(t.Context(), excluded, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.deleteNode(t, "ghost") })
	eventually(t, "the reason why a node is left out", 30*time.Second, func() error {
		_, stderr, err := w.Kubectl(t.Context(), "top", "node", "ghost")
		if err == nil || !strings.Contains(stderr, "the configuration excludes the node") {
			return fmt.Errorf("kubectl top node ghost: %w, %q", err, stderr)
		}
		return nil
	})
}
