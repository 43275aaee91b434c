package informer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

// resizedPod is a pod in JSON: conditions, the resources of its container's specification and status, and
// further fields of the specification and status.
func resizedPod(phase, conditions, spec, state, status, moreSpec, moreStatus string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"containers": [
		{"name": "app", "resources": %s}, {"name": "proxy"}]%s},
		"status": {"phase": %q, "conditions": [%s], "containerStatuses": [{"name": "proxy", "state": {"running": {}}, "resources": {}},
		{"name": "app", "state": {%q: {}}, "resources": %s}]%s}}`, spec, moreSpec, phase, conditions, state, status, moreStatus)
}

// TestResize converts what the status reports about resizes in place.
func TestResize(t *testing.T) {
	const (
		large    = `{"requests": {"cpu": "200m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}`
		small    = `{"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}`
		deferred = `{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "Node didn't have enough resource: memory"}`
		progress = `{"type": "PodResizeInProgress", "status": "True"}`
		failing  = `{"type": "PodResizeInProgress", "status": "True", "reason": "Error", "message": "write memory.max"}`
		over     = `{"type": "PodResizePending", "status": "False", "reason": "Deferred"}`
		differs  = "app has CPU request 100m, not 200m, memory request 128Mi, not 256Mi, memory limit 256Mi, not 512Mi"
	)
	for _, test := range []struct {
		name, pod, want string
	}{
		{"applied", resizedPod("Running", "", large, "running", large, "", ""), ""},
		{"not seen", resizedPod("Running", "", large, "running", small, "", ""), "Pending: " + differs},
		{"deferred", resizedPod("Running", deferred, large, "running", small, "", ""), "Deferred: " + differs + " (Node didn't have enough resource: memory)"},
		{"in progress, and a later one deferred", resizedPod("Running", progress+","+deferred, large, "running", small, "", ""), "Deferred: " + differs + " (Node didn't have enough resource: memory)"},
		{"in progress", resizedPod("Running", progress, large, "running", small, "", ""), "InProgress: " + differs},
		{"in progress, and equal", resizedPod("Running", progress, large, "running", large, "", ""), "InProgress"},
		{"failing", resizedPod("Running", failing, large, "running", small, "", ""), "Error: " + differs + " (write memory.max)"},
		{"over", resizedPod("Running", over, large, "running", large, "", ""), ""},
		{"in other words", resizedPod("Running", "", `{"limits": {"cpu": "0.5", "memory": "1Gi"}}`, "running", `{"limits": {"cpu": "500m", "memory": "1073741824"}}`, "", ""), ""},
		{"less than a page", resizedPod("Running", "", `{"limits": {"memory": "1073741825"}}`, "running", `{"limits": {"memory": "1Gi"}}`, "", ""), ""},
		// A container that does not run has nothing applied, and an old kubelet reports nothing.
		{"stopped", resizedPod("Running", "", large, "terminated", small, "", ""), ""},
		{"ended", resizedPod("Succeeded", deferred, large, "running", small, "", ""), ""},
		{"not reported", resizedPod("Running", "", large, "running", "null", "", ""), ""},
		{"limit not reported", resizedPod("Running", "", large, "running", `{"requests": {"cpu": "200m", "memory": "256Mi"}}`, "", ""), ""},
		{"limit added", resizedPod("Running", deferred, `{"limits": {"memory": "1Gi"}}`, "running", `{}`, "", ""), "Deferred: app has memory limit none, not 1Gi (Node didn't have enough resource: memory)"},
		{"of the pod", resizedPod("Running", progress, "{}", "running", "{}", `, "overhead": {"cpu": "50m", "memory": "64Mi"}, "resources": `+large,
			`, "allocatedResources": {"cpu": "250m", "memory": "320Mi"}, "resources": {"requests": {"cpu": "237m"}, "limits": {"cpu": "550m", "memory": "576Mi"}}`),
			"InProgress: CPU limit 550m, not 1050m"},
	} {
		p := podFromJSON(t, test.pod)
		got := ""
		if p.Resize != nil {
			got = p.Resize.Describe(true)
			if p.Resize.Message != "" {
				got += " (" + p.Resize.Message + ")"
			}
		}
		if got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.name, got, test.want)
		}
	}
	long := podFromJSON(t, resizedPod("Running", `{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "`+strings.Repeat("x", 4096)+`"}`, large, "running", small, "", ""))
	if got := len(long.Resize.Message); got != maxEndMessage {
		t.Errorf("a message of 4,096 bytes: got %d of them, want %d", got, maxEndMessage)
	}
	if own := long.Resize.Of("proxy"); own != nil {
		t.Errorf("of the container proxy: got %+v, want none", own)
	}
}

// TestLimitInForceAtTheEnd checks that the end of a run has the limits that were in force while it lasted: the
// status has none for a container that does not run.
func TestLimitInForceAtTheEnd(t *testing.T) {
	const (
		large    = `{"limits": {"memory": "4Gi"}}`
		small    = `{"limits": {"memory": "1Gi"}}`
		deferred = `{"type": "PodResizePending", "status": "True", "reason": "Deferred"}`
	)
	before := podFromJSON(t, resizedPod("Running", deferred, large, "running", small, "", ""))
	after := podFromJSON(t, strings.Replace(resizedPod("Running", deferred, large, "terminated", small, "", ""),
		`"terminated": {}`, `"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-02T12:00:00Z"}`, 1))
	ends := endlog.Ends(before, after, nil, time.Date(2026, 1, 2, 12, 0, 1, 0, time.UTC), time.Hour)
	if len(ends) != 1 {
		t.Fatalf("got %d ends, want 1", len(ends))
	}
	if got := ends[0].Resize.InForce("app", metric.MemoryLimit, 4<<30); got != 1<<30 {
		t.Errorf("the container ended with a limit of %g in force, want 1Gi", got)
	}
	if got := ends[0].Resize.InForce("proxy", metric.MemoryLimit, 0); got != 0 {
		t.Errorf("the other container has no limit, got %g", got)
	}
}
