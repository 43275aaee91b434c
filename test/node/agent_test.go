//go:build e2e

package node

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/eviction/evictionreport"
)

// capabilities are the numbers of the capabilities that an agent may have
// (linux/capability.h).
var capabilities = map[corev1.Capability]uint{"DAC_READ_SEARCH": 2, "IPC_LOCK": 14}

// TestPrivileges checks the rights of the agent's process in the kernel, and
// what an agent with fewer rights reports as missing.
func TestPrivileges(t *testing.T) {
	w := sharedCluster
	w.agent(t, "least")
	t.Run("capabilities", func(t *testing.T) {
		set, err := w.kube.AppsV1().DaemonSets(agents).Get(t.Context(), "weir-agent", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var want uint64
		for _, c := range set.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add {
			bit, ok := capabilities[c]
			if !ok {
				t.Errorf("the agent is given %s: is that least privilege?", c)
			}
			want |= 1 << bit
		}
		for field, is := range w.agentStatus(t, "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp") {
			wanted := want
			switch field {
			case "CapInh", "CapAmb":
				wanted = 0
			case "NoNewPrivs":
				wanted = 1
			case "Seccomp":
				wanted = 2 // a filter
			}
			if is != wanted {
				t.Errorf("%s of the agent is %#x, want %#x", field, is, wanted)
			}
		}
		if filters := w.agentStatus(t, "Seccomp_filters")["Seccomp_filters"]; filters < 2 {
			t.Errorf("the agent has %d seccomp filters, want those of the runtime and its own", filters)
		}
	})
	t.Run("lost", func(t *testing.T) {
		r, err := w.report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Unwatched) > 0 || !slices.ContainsFunc(r.Watches, func(w evictionreport.Watch) bool { return w.Kind == "Poll" }) {
			t.Errorf("watches %+v, and not %q: want memory to be polled, and nothing else", r.Watches, r.Unwatched)
		}
		for _, s := range r.Signals {
			for _, threshold := range s.Thresholds {
				if s.Name == "memory.available" && threshold.Text != "memory.available<100Mi" {
					t.Errorf("without the kubelet's thresholds: got %s, want the kubelet's default, memory.available<100Mi", threshold.Text)
				}
			}
		}
		if warned := strings.Join(r.Warnings, "\n"); !strings.Contains(warned, "configz") {
			t.Errorf("an agent that may not ask for the kubelet's thresholds does not say so: %q", warned)
		}
		t.Logf("warnings: %q", r.Warnings)
	})
}

// agentStatus returns fields of /proc/PID/status of the agent's process, parsed
// as hexadecimal numbers.
func (w *testCluster) agentStatus(t *testing.T, fields ...string) map[string]uint64 {
	t.Helper()
	p := w.agentPod(t)
	pids, err := w.readFile(t.Context(), w.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]+"/cgroup.procs")
	if err != nil || strings.Count(pids, "\n") != 1 {
		t.Fatalf("the agent's processes: got %q, %v; want one", pids, err)
	}
	status, err := w.readFile(t.Context(), "/proc/"+strings.TrimSpace(pids)+"/status")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]uint64{}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		for _, f := range fields {
			if name != f {
				continue
			}
			if found[f], err = strconv.ParseUint(strings.TrimSpace(value), 16, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(found) != len(fields) {
		t.Fatalf("of %v the kernel tells %v", fields, found)
	}
	return found
}

// agentPod returns the pod of the node's agent.
func (w *testCluster) agentPod(t *testing.T) *corev1.Pod {
	t.Helper()
	list, err := w.kube.CoreV1().Pods(agents).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			return p
		}
	}
	t.Fatal("no agent runs")
	return nil
}
