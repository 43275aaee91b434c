//go:build e2e

package node

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// testPolicies sends requests with the identity of an agent in mode kill, which
// the API server must deny or allow. They are dry runs, so nothing changes.
func (w *testCluster) testPolicies(t *testing.T, namespace string) {
	server, err := w.kube.CoreV1().Pods("weir-system").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(server.Items) == 0 {
		t.Fatalf("find weir's server: %v", err)
	}
	second, none := int64(1), int64(0)
	deletes := func(namespace, pod string, grace *int64) func(*kubernetes.Clientset) error {
		return func(c *kubernetes.Clientset) error {
			return c.CoreV1().Pods(namespace).Delete(t.Context(), pod, metav1.DeleteOptions{GracePeriodSeconds: grace, DryRun: []string{metav1.DryRunAll}})
		}
	}
	marks := func(condition corev1.PodConditionType, phase string) func(*kubernetes.Clientset) error {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True"}]%s}}`, condition, phase)
		return func(c *kubernetes.Clientset) error {
			_, err := c.CoreV1().Pods(namespace).Patch(t.Context(), "filler", types.StrategicMergePatchType, []byte(patch),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
			return err
		}
	}
	for _, c := range []struct {
		what  string
		node  string
		does  func(*kubernetes.Clientset) error
		error string // empty if it is allowed
	}{
		{"delete a pod of its node", w.Node(), deletes(namespace, "filler", &second), ""},
		{"mark a pod of its node", w.Node(), marks(corev1.DisruptionTarget, ""), ""},
		{"delete a pod of another node", "another", deletes(namespace, "filler", &second), "no pods of other nodes"},
		{"mark a pod of another node", "another", marks(corev1.DisruptionTarget, ""), "no pods of other nodes"},
		{"delete a pod, from nowhere", "", deletes(namespace, "filler", &second), "does not say on which node"},
		{"delete a critical pod", w.Node(), deletes("weir-system", server.Items[0].Name, &second), "no critical pods"},
		{"delete without time to end", w.Node(), deletes(namespace, "filler", &none), "a second to end"},
		{"write another condition", w.Node(), marks("weir.test/other", ""), "no more of a pod than the condition DisruptionTarget"},
		{"write a phase", w.Node(), marks(corev1.DisruptionTarget, `,"phase":"Failed"`), "no more of a pod than the condition DisruptionTarget"},
	} {
		config := rest.CopyConfig(w.config)
		config.Impersonate = rest.ImpersonationConfig{
			UserName: agentUser, Groups: []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + agents},
		}
		if c.node != "" {
			config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {c.node}}
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		switch err := c.does(client); {
		case c.error == "" && err != nil:
			t.Errorf("%s: got %v, want that it may", c.what, err)
		case c.error != "" && (err == nil || !strings.Contains(err.Error(), c.error)):
			t.Errorf("%s: got %v, want an error with %q", c.what, err, c.error)
		}
	}
}
