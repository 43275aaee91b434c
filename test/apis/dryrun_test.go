//go:build e2e

package apis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestDryRun creates two Autoscalers with the same load. One of them is in mode
// DryRun and only reports its decisions. The API server's audit log shows what
// weir wrote.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	namespace := w.namespace(t, "dry-run")
	for _, name := range []string{"dry", "wet"} {
		w.loadable(t, namespace, name)
	}
	w.autoscaler(t, namespace, "dry", "DryRun", following("dry", 5, onCPU(50)))
	w.autoscaler(t, namespace, "wet", "Active", following("wet", 5, onCPU(50)))
	seen := w.watchScales(t, namespace)
	for _, name := range []string{"dry", "wet"} {
		w.weirKnowsCPU(t, namespace, name)
	}
	began := time.Now()
	for _, name := range []string{"dry", "wet"} {
		if err := w.load(t.Context(), namespace, name, busy); err != nil {
			t.Fatal(err)
		}
	}
	want := func(current, desired int32) func() error {
		return func() error {
			a, err := w.getAutoscaler(t.Context(), namespace, "dry")
			if err != nil {
				return err
			}
			if s := a.Status; s.CurrentReplicas != current || s.DesiredReplicas != desired {
				return fmt.Errorf("its status has %d replicas and desires %d", s.CurrentReplicas, s.DesiredReplicas)
			}
			return nil
		}
	}
	eventually(t, "the dry run desires what it would scale to", 90*time.Second, want(few, many))
	if _, _, err := seen.waitForReplicas(t.Context(), "wet", many, began, 90*time.Second); err != nil {
		t.Fatal(err)
	}

	e, err := w.explanation(t.Context(), namespace, "autoscalers", "dry")
	if err != nil {
		t.Fatal(err)
	}
	if e.Mode != "DryRun" || e.Current != few || e.Desired != many || len(e.Metrics) != 1 || len(e.Metrics[0].Pods) != 1 ||
		e.Metrics[0].Pods[0].Class != "Counted" || !strings.HasPrefix(e.Metrics[0].Pods[0].Name, "dry-") {
		t.Errorf("explanation of the dry run: got %+v", e)
	}
	t.Logf("the dry run explains: %s", e.Summary)

	// A minute more, in which the DryRun Autoscaler must not write, and then
	// scaling down.
	wait(t, time.Minute)
	if err := want(few, many)(); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	for _, name := range []string{"dry", "wet"} {
		if err := w.load(t.Context(), namespace, name, idle); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the dry run desires the one replica there is", 90*time.Second, want(few, few))
	if _, _, err := seen.waitForReplicas(t.Context(), "wet", few, began, 90*time.Second); err != nil {
		t.Fatal(err)
	}

	// A write appears in the audit log a moment later, also the last one.
	var writes []auditv1.Event
	eventually(t, "the audit log has the Active one's writes", 10*time.Second, func() error {
		writes = w.writes(t, namespace)
		var scaled []string
		for _, e := range writes {
			if ofScale(&e, "wet") {
				scaled = append(scaled, string(e.RequestObject.Raw))
			}
		}
		if len(scaled) < 2 || !strings.Contains(scaled[len(scaled)-1], `"replicas":1`) {
			return fmt.Errorf("weir wrote the scale %q", scaled)
		}
		return nil
	})
	for _, e := range writes {
		o := e.ObjectRef
		switch {
		case ofScale(&e, "wet"), o.Resource == "events":
		case o.Resource == "autoscalers" && o.Subresource == "status":
		default:
			t.Errorf("weir's %s of %s/%s %s in the audit log: want none", e.Verb, o.Resource, o.Subresource, o.Name)
		}
	}
	if before, after := seen.of("dry", began); before != few || len(after) > 0 {
		t.Errorf("the Deployment of the dry run had %d replicas, and then: %s", before, inWords(after, began))
	}
	t.Logf("weir's writes in %v: %s", time.Since(began).Round(time.Second), listed(writes))
}
