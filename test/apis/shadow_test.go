//go:build e2e

package apis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// hpaController is the user that Kubernetes' own controller of
// HorizontalPodAutoscalers is for the API server.
const hpaController = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

// TestShadow changes the load of a HorizontalPodAutoscaler in steps, while weir
// decides beside it on the same metrics. For each change in the API server's
// audit log, weir must report that it would have made the same one, and never
// that it would have made another. weir must not write anything.
func TestShadow(t *testing.T) {
	w := sharedCluster
	w.resourceMetricsFrom(t, ours) // before other tests can want metrics-server, so that those all have their turn after this
	t.Parallel()
	namespace := w.namespace(t, "shadow")
	w.loadable(t, namespace, "web")
	w.addressOf(t, namespace, "web")
	seen := w.watchScales(t, namespace)
	spec := following("web", 5, onCPU(50))
	window := int32(15)
	spec.Behavior.ScaleDown.StabilizationWindowSeconds = &window
	w.autoscale(t, namespace, "web", spec)
	w.knowsCPU(t, namespace, "web")
	compared := w.compares(t, namespace, "web")
	// Until weir has watched for a whole window, and for the longest period of a
	// policy, it has less history than the controller.
	wait(t, 30*time.Second)

	// Each step down removes the whole load, because the pod that has it may be one
	// of those that end.
	for _, step := range []struct {
		load     int
		replicas int32
	}{{busy, many}, {idle, few}, {66, 5}, {idle, few}} {
		changed := time.Now()
		if err := w.load(t.Context(), namespace, "web", step.load); err != nil {
			t.Fatal(err)
		}
		if _, final, err := seen.waitForReplicas(t.Context(), "web", step.replicas, changed, 2*time.Minute); err != nil {
			t.Fatal(err)
		} else {
			t.Logf("a load of %dm: %d replicas after %.1fs", step.load, step.replicas, final.Sub(changed).Seconds())
		}
		compared.look(t, 20*time.Second) // the number of replicas does not change
	}
	compared.look(t, 25*time.Second) // until weir has judged all changes

	changes := w.audit(t, namespace, func(e *auditv1.Event) bool { return e.User.Username == hpaController && ofScale(e, "web") })
	var others []string
	for _, line := range compared.lines {
		if !strings.Contains(line, " agreed: ") {
			others = append(others, line)
		}
	}
	t.Logf("the controller changed the scale %d times; weir compared:\n%s", len(changes), strings.Join(compared.lines, "\n"))
	if len(others) > 0 {
		t.Errorf("weir did not agree %d times:\n%s", len(others), strings.Join(others, "\n"))
	}
	if len(changes) < 4 || len(compared.lines) != len(changes) {
		t.Errorf("the audit log has %d changes of the controller's, and weir compared %d: want as many, and at least one a step", len(changes), len(compared.lines))
	}
	t.Logf("of all HorizontalPodAutoscalers:\n%s", w.shadowCounts(t))

	// The control: the log must contain the writer of the object's status.
	statuses := w.audit(t, namespace, func(e *auditv1.Event) bool {
		return e.User.Username == hpaController && e.ObjectRef.Resource == "horizontalpodautoscalers" && e.ObjectRef.Subresource == "status"
	})
	if len(statuses) == 0 {
		t.Error("the audit log has no status of the HorizontalPodAutoscaler: what it lacks says nothing")
	}
	for _, e := range w.writes(t, namespace) {
		t.Errorf("weir's %s of %s/%s %s in the audit log: want none", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name)
	}
}

// comparisons are weir's comparisons for changes of one
// HorizontalPodAutoscaler's target.
type comparisons struct {
	ask   func() ([]string, error)
	lines []string // each once, in order
}

// compares returns comparisons that ask weir for its lines.
func (w *testCluster) compares(t *testing.T, namespace, name string) *comparisons {
	t.Helper()
	return &comparisons{ask: func() ([]string, error) {
		e, err := w.explanation(t.Context(), namespace, "horizontalpodautoscalers", name)
		if err != nil {
			return nil, err
		}
		if e.Mode != "Shadow" || e.OtherController == nil {
			return nil, fmt.Errorf("weir does not shadow it: %+v", e)
		}
		var lines []string
		for _, note := range e.Notes {
			if line, ok := strings.CutPrefix(note, "Compared: "); ok {
				lines = append(lines, line)
			}
		}
		slices.Reverse(lines) // the newest is first in weir's answer
		return lines, nil
	}}
}

// look collects the comparisons every second for this time.
func (c *comparisons) look(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); wait(t, time.Second) {
		lines, err := c.ask()
		if err != nil {
			t.Error(err)
			continue
		}
		for _, line := range lines {
			if !slices.Contains(c.lines, line) {
				c.lines = append(c.lines, line)
			}
		}
	}
}

// shadowCounts returns the lines of weir's own metrics about agreement.
func (w *testCluster) shadowCounts(t *testing.T) string {
	t.Helper()
	itself := "--server=https://" + w.podsOf(t, "weir-system", "app.kubernetes.io/name=weir")[0].Status.PodIP + ":10250"
	all := w.kubectl(t, itself, "--insecure-skip-tls-verify", "get", "--raw", "/metrics")
	return strings.Join(regexp.MustCompile(`(?m)^weir_autoscaler_shadow_.*$`).FindAllString(all, -1), "\n")
}
