//go:build e2e

package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-metrics/weir/eviction/execute"
)

// TestBudget creates a PodDisruptionBudget that forbids an eviction. The pod
// must remain, and weir must name the budget. Without the budget, the pod must
// be evicted.
func TestBudget(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "budget")
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "keep-one"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	}
	budgets := w.kube.PolicyV1().PodDisruptionBudgets(namespace)
	if _, err := budgets.Create(t.Context(), budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	guarded := w.create(t, namespace, w.pod("guarded", "", requests(10*mi, mi)))["guarded"]
	orderLoad(t, guarded, fmt.Sprintf("/hold?bytes=%d", 200*mi))
	eventually(t, "the budget is known", 30*time.Second, func() error {
		b, err := budgets.Get(t.Context(), budget.Name, metav1.GetOptions{})
		if err == nil && b.Status.CurrentHealthy != 1 {
			err = fmt.Errorf("it has %d pods of %d", b.Status.CurrentHealthy, b.Status.ExpectedPods)
		}
		return err
	})
	fates := w.fates(t, namespace)

	s := w.memoryShortage()
	available, err := s.available()
	if err != nil {
		t.Fatal(err)
	}
	// This is far above the available memory, so the node is short of memory by
	// definition.
	soft := fmt.Sprintf("memory.available<%d", available+(w.capacity-available)/2)
	w.agent(t, "evict", "SOFT", soft)
	eventually(t, "weir says that the budget is in the way", time.Minute, func() error {
		r, err := w.report(t.Context())
		if err != nil {
			return err
		}
		for _, a := range r.Actions {
			if a.Result == string(execute.Blocked) && a.Pod == namespace+"/guarded" {
				if !strings.Contains(a.Budget, budget.Name) {
					t.Errorf("blocked by budget %q, want %s", a.Budget, budget.Name)
				}
				return nil
			}
		}
		return fmt.Errorf("it says %q: %+v", r.Summary, r.Actions)
	})
	words := w.kubectlWeir(t, "explain", "eviction", "--node", w.Node())
	for _, want := range []string{budget.Name, "guarded"} {
		if !strings.Contains(words, want) {
			t.Errorf("kubectl weir explain eviction does not name %q:\n%s", want, words)
		}
	}
	t.Logf("kubectl weir explain eviction --node %s\n%s", w.Node(), words)
	if gone := fates.evicted(); len(gone) > 0 {
		t.Fatalf("in spite of the budget: %+v", gone)
	}

	if err := budgets.Delete(t.Context(), budget.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod goes without the budget", time.Minute, func() error {
		if gone := fates.evicted(); len(gone) == 0 || gone[0].pod != "guarded" {
			return fmt.Errorf("gone: %+v", gone)
		}
		return nil
	})
}
