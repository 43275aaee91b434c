//go:build e2e

package apis

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestConflict gives a Deployment two autoscalers. The younger Autoscaler, and
// an Autoscaler beside a HorizontalPodAutoscaler, write nothing until the other
// one is gone.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "conflict")
	for _, name := range []string{"hpas", "weirs"} {
		w.loadable(t, namespace, name)
	}
	// The HorizontalPodAutoscaler never scales, so every write is weir's.
	w.autoscale(t, namespace, "hpas", following("hpas", 5, onCPU(100000)))
	w.autoscaler(t, namespace, "hpas", "Active", following("hpas", 5, onCPU(50)))
	// The older Autoscaler never scales either.
	w.autoscaler(t, namespace, "weirs-older", "Active", following("weirs", 5, onCPU(100000)))
	w.hasCondition(t, namespace, "weirs-older", "ScalingActive", metav1.ConditionTrue, 2*time.Minute)
	// The same target in another API version.
	younger := following("weirs", 5, onCPU(50))
	younger.ScaleTargetRef.APIVersion = "apps/v1beta1"
	w.autoscaler(t, namespace, "weirs-younger", "Active", younger)

	seen := w.watchScales(t, namespace)
	for _, name := range []string{"hpas", "weirs-younger"} {
		message := w.hasCondition(t, namespace, name, "Conflict", metav1.ConditionTrue, time.Minute)
		t.Logf("Autoscaler %s: %s: %s", name, message.Reason, message.Message)
	}
	if a, err := w.getAutoscaler(t.Context(), namespace, "weirs-older"); err != nil {
		t.Error(err)
	} else if meta.IsStatusConditionTrue(a.Status.Conditions, "Conflict") {
		t.Errorf("the older Autoscaler has conditions %+v", a.Status.Conditions)
	}
	loaded := time.Now()
	for _, name := range []string{"hpas", "weirs"} {
		w.addressOf(t, namespace, name)
		if err := w.load(t.Context(), namespace, name, busy); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"hpas", "weirs-younger"} {
		eventually(t, "Autoscaler "+name+" says what it would do", 90*time.Second, func() error {
			a, err := w.getAutoscaler(t.Context(), namespace, name)
			if err == nil && a.Status.DesiredReplicas != many {
				err = fmt.Errorf("it desires %d replicas, want %d: %+v", a.Status.DesiredReplicas, many, a.Status.Conditions)
			}
			return err
		})
	}
	wait(t, 30*time.Second)
	for _, name := range []string{"hpas", "weirs"} {
		if _, after := seen.of(name, loaded); len(after) > 0 {
			t.Errorf("%s has two autoscalers, and was scaled: %s", name, inWords(after, loaded))
		}
	}
	scaled := func() (n int) {
		for _, e := range w.writes(t, namespace) {
			if ofScale(&e, "hpas") || ofScale(&e, "weirs") {
				n++
			}
		}
		return n
	}
	if n := scaled(); n > 0 {
		t.Errorf("the audit log has %d of weir's writes of scales while there is a conflict, want none", n)
	}

	freed := time.Now()
	if err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Delete(t.Context(), "hpas", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.dynamic.Resource(autoscalers).Namespace(namespace).Delete(t.Context(), "weirs-older", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]string{"hpas": "hpas", "weirs-younger": "weirs"} {
		if _, final, err := seen.waitForReplicas(t.Context(), of, many, freed, time.Minute); err != nil {
			t.Error(err)
		} else {
			t.Logf("Autoscaler %s acts %.1fs after the other is gone", name, final.Sub(freed).Seconds())
		}
		w.hasCondition(t, namespace, name, "Conflict", metav1.ConditionFalse, time.Minute)
	}
	eventually(t, "the audit log has weir's writes", 10*time.Second, func() error {
		if n := scaled(); n != 2 {
			return fmt.Errorf("it has %d, want 2", n)
		}
		return nil
	})
}
