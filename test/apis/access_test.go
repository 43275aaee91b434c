//go:build e2e

package apis

import (
	"context"
	"io"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// deleteNode deletes a node at the end of a test.
func (w *testCluster) deleteNode(t *testing.T, name string) {
	if err := w.kube.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// TestAccess sends requests directly to weir's pod, without the API server:
// without credentials, as a user without rights, and as a user with rights in
// one namespace.
func TestAccess(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "access")
	mine := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "read-metrics"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}},
	}
	if _, err := w.kube.RbacV1().Roles(namespace).Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read-metrics"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "member"}},
	}
	if _, err := w.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	waits := pod("waits", container("app", "pause"))
	waits.Spec.NodeSelector = map[string]string{"weir.test/nowhere": "true"}
	w.create(t, namespace, waits)

	pods := w.podsOf(t, "weir-system", "app.kubernetes.io/name=weir")
	at := w.to(pods[0].Status.PodIP, 10250)
	nobody := rest.AnonymousClientConfig(at)
	as := func(name string) *rest.Config {
		u, err := w.UserConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		u.Host, u.Insecure, u.CAData, u.CAFile = at.Host, true, nil, ""
		return u
	}
	outsider, member := as("stranger"), as("member")

	all := []string{
		"/apis/metrics.k8s.io/v1beta1/pods", "/apis/metrics.k8s.io/v1beta1/nodes",
		"/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods",
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + namespace + "/pods/*/memory_working_set_bytes",
		"/apis/external.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/queue_depth",
		"/api/v1/model/metrics/", "/api/v1/model/namespaces/" + namespace + "/pods/", "/api/v1/model/debug/allkeys",
		"/api/v1/metric-export", "/apis/metrics/v1alpha1/nodes",
		"/apis/weir.dev/v1alpha1/pods", "/apis/weir.dev/v1alpha1/nodes", "/apis/weir.dev/v1alpha1/missing",
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/pods", "/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/missing",
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/pods/web/explanation", "/apis/weir.dev/v1alpha1/nodes/" + w.Node() + "/explanation",
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/autoscalers/web/explanation",
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/horizontalpodautoscalers/web/explanation",
		"/metrics", "/metrics/cluster", "/debug/pprof/", "/",
	}
	for _, path := range all {
		wantStatus(t, "nobody", nobody, path, http.StatusUnauthorized, http.StatusForbidden)
		wantStatus(t, "a stranger", outsider, path, http.StatusForbidden)
	}
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		wantStatus(t, "nobody", nobody, path, http.StatusOK)
	}
	for path, status := range map[string]int{
		"/apis/metrics.k8s.io/v1beta1/namespaces/" + namespace + "/pods":               http.StatusOK,
		"/api/v1/model/namespaces/" + namespace + "/pods/":                             http.StatusOK,
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/pods":                    http.StatusOK,
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/missing":                 http.StatusOK,
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/pods/waits/explanation":  http.StatusOK,
		"/apis/weir.dev/v1alpha1/pods?namespace=" + namespace:                          http.StatusOK,
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/pods/nobody/explanation": http.StatusNotFound,
		"/apis/metrics.k8s.io/v1beta1/namespaces/kube-system/pods":                     http.StatusForbidden,
		"/apis/metrics.k8s.io/v1beta1/pods":                                            http.StatusForbidden,
		"/api/v1/model/namespaces/kube-system/pods/":                                   http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/namespaces/kube-system/pods":                          http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/namespaces/kube-system/pods/nobody/explanation":       http.StatusForbidden,
		// This user may read the pods' metrics, but not autoscalers.
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/autoscalers/web/explanation":              http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/namespaces/" + namespace + "/horizontalpodautoscalers/web/explanation": http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/pods":                               http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/missing":                            http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/nodes":                              http.StatusForbidden,
		"/apis/weir.dev/v1alpha1/nodes/" + w.Node() + "/explanation": http.StatusForbidden,
		"/metrics/cluster":                                           http.StatusForbidden,
	} {
		wantStatus(t, "a member", member, path, status)
	}
}

// wantStatus sends a request for a path and checks that the status of the
// answer is one of want.
func wantStatus(t *testing.T, who string, c *rest.Config, path string, want ...int) {
	t.Helper()
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Errorf("%s asks for %s: %v", who, path, err)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
	answer.Body.Close()
	for _, status := range want {
		if answer.StatusCode == status {
			return
		}
	}
	t.Errorf("%s asks for %s: got %d, want %v: %s", who, path, answer.StatusCode, want, body)
}
