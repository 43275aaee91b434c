//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/explain/death"
)

// TestKills has the kernel kill at the limit of a container, of a sidecar, of a
// pod and of two slices, all processes of a container together, and a child
// alone. weir names each, no kill for the signal of a process, and nothing for a
// pod that goes on.
func TestKills(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("only cgroup version 2 counts whose limit was reached: -node=v2")
	}
	w.agent(t, "observe")
	namespace := w.namespace(t, "kills")
	memory := func(bytes int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(bytes, resource.BinarySI)}
	}
	own, parent, calm := w.pod("own", "", requests(16*mi, mi)), w.pod("parent", "", requests(16*mi, mi)), w.pod("calm", "", requests(16*mi, mi))
	own.Spec.Containers[0].Resources.Limits = memory(48 * mi)
	calm.Spec.Containers[0].Resources.Limits = memory(48 * mi)
	parent.Spec.Containers[0].Resources.Limits = nil
	parent.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: *resource.NewQuantity(32*mi, resource.BinarySI)}, Limits: memory(64 * mi),
	}
	slice, child := w.pod("slice", "", nil), w.pod("child", "", requests(16*mi, mi))
	child.Spec.Containers[0].Resources.Limits = memory(96 * mi)
	group := w.pod("group", "", requests(16*mi, mi), "exit", "--child=200Mi", "--after=1h")
	group.Spec.Containers[0].Resources.Limits = memory(64 * mi)
	sidecar, burst, signalled := w.pod("sidecar", "", requests(16*mi, mi), "pause"), w.pod("burst", "", requests(16*mi, mi)), w.pod("signalled", "", requests(16*mi, mi), "pause")
	side := *own.Spec.Containers[0].DeepCopy()
	side.Name, side.RestartPolicy = "side", new(corev1.ContainerRestartPolicyAlways)
	sidecar.Spec.InitContainers = []corev1.Container{side}
	pods := w.create(t, namespace, own, parent, calm, slice, child, group, sidecar, burst, signalled)

	named := func(pod string) (*death.Death, error) {
		r, err := w.deaths(t.Context(), namespace+"/"+pod)
		if err == nil && len(r.Deaths) == 0 {
			err = errors.New(r.Summary)
		}
		if err != nil {
			return nil, err
		}
		return &r.Deaths[0], nil // the newest
	}
	expect := func(pod, want string) {
		t.Helper()
		began := time.Now()
		eventually(t, pod+" is named "+want, 20*time.Second, func() error {
			d, err := named(pod)
			if err != nil {
				return err
			}
			if got := fmt.Sprintf("%s, %s: %s", d.Cause, d.Confidence, d.Message); !strings.HasPrefix(got, want) {
				return fmt.Errorf("got %s (%v)", got, d.Evidence)
			}
			t.Logf("%-7s after %4.1fs: %s, %s: %s", pod, time.Since(began).Seconds(), d.Cause, d.Confidence, d.Message)
			return nil
		})
	}
	take := func(pod string) {
		t.Helper()
		takeMemory(t, pods[pod], 600*mi)
	}

	take("own")
	expect("own", "ContainerLimit, certain: killed by the kernel: it reached its own memory limit of 48Mi")
	take("parent")
	expect("parent", "PodLimit, certain: killed by the kernel: its pod reached the pod's memory limit of 64Mi")

	take("sidecar")
	expect("sidecar", "ContainerLimit, certain: killed by the kernel: it reached its own memory limit of 48Mi")
	expect("group", "ContainerLimit, certain: killed by the kernel: it reached its own memory limit of 64Mi")
	if d, err := named("group"); err == nil && !strings.Contains(fmt.Sprint(d.Evidence), "together (memory.oom.group)") {
		t.Errorf("the kernel killed all processes of group, and weir has %v", d.Evidence)
	}
	w.inGuest(t, "kill -KILL $(cat "+w.cgroups(t, pods["signalled"], pods["signalled"].Status.ContainerStatuses[0].ContainerID)[0]+"/cgroup.procs)")
	expect("signalled", "Signalled, ")

	takeOfSlice := func(pod, class string) {
		// By systemd, which writes the limit again whenever the kubelet changes the slice.
		unit := "kubepods-" + class + ".slice"
		w.inGuest(t, fmt.Sprintf("systemctl set-property --runtime %[1]s MemoryMax=$(($(cat /sys/fs/cgroup/kubepods.slice/%[1]s/memory.current) + %[2]d))", unit, 128*mi))
		defer w.inGuest(t, "systemctl set-property --runtime "+unit+" MemoryMax=infinity")
		take(pod)
		expect(pod, "SliceLimit, certain: killed by the kernel: slice /kubepods.slice/"+unit)
	}
	takeOfSlice("slice", "besteffort")
	takeOfSlice("burst", "burstable")

	// A process that grows in the container, and that the kernel kills first.
	dir := w.cgroups(t, pods["child"], pods["child"].Status.ContainerStatuses[0].ContainerID)[0]
	grow := func() {
		w.inGuest(t, fmt.Sprintf("echo 0 >%[1]s/memory.oom.group; sh -c 'echo $$ >%[1]s/cgroup.procs && echo 1000 >/proc/self/oom_score_adj && exec tail /dev/zero' >/dev/null 2>&1 || true", dir))
	}
	grow()
	expect("child", "ChildKilled, certain: goes on, but the kernel killed 1 process in it: it reached its own memory limit of 96Mi")

	if d, err := named("calm"); err == nil {
		t.Errorf("nothing happened to pod calm, and weir says %s: %s", d.Cause, d.Message)
	}
	metrics, err := w.askAgent(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"container", "pod", "slice", "child"} {
		if !strings.Contains(metrics, fmt.Sprintf(`weir_oom_kills_total{namespace="%s",scope="%s"`, namespace, scope)) {
			t.Errorf("the agent counts no kill of scope %s", scope)
		}
	}
	t.Log(w.kubectlWeir(t, "top", "pods", "-n", namespace, "--sort-by=oom"))

	// The counters have no names: with the kernel's log, the process is named, too.
	if d, err := named("child"); err != nil || strings.Contains(fmt.Sprint(d.Evidence), "the kernel killed process") {
		t.Errorf("the agent does not read the kernel's log, and weir has %+v (%v)", d, err)
	}
	w.agent(t, "kernel-log")
	grow()
	eventually(t, "the process in child has its name", 20*time.Second, func() error {
		d, err := named("child")
		if err == nil && !regexp.MustCompile(`the kernel killed process tail \(pid [1-9]\d*\) with [4-9]\d(\.\d+)?Mi resident`).MatchString(fmt.Sprint(d.Evidence)) {
			err = fmt.Errorf("got %s: %v", d.Message, d.Evidence)
		}
		return err
	})
	t.Log(w.kubectlWeir(t, "explain", "death", namespace+"/child"))
}

// deaths returns the ends of a pod, or of a container of it, the newest first.
func (w *testCluster) deaths(ctx context.Context, name string) (*explainapi.DeathDocument, error) {
	out, err := w.weir(ctx, "explain", "death", name, "-o", "json")
	if err != nil {
		return nil, err
	}
	r := &explainapi.DeathDocument{}
	return r, json.Unmarshal([]byte(out), r)
}

// endedBy checks that weir names the cause for which a whole pod ended.
func (w *testCluster) endedBy(t *testing.T, name string, want death.Cause) {
	t.Helper()
	eventually(t, name+" is known to have ended by "+string(want), 20*time.Second, func() error {
		r, err := w.deaths(t.Context(), name)
		if err != nil {
			return err
		}
		for i := range r.Deaths {
			if d := &r.Deaths[i]; d.Cause == want {
				t.Logf("%s: %s, %s: %s", name, d.Cause, d.Confidence, d.Message)
				return nil
			}
		}
		return fmt.Errorf("got %q: %+v", r.Summary, r.Deaths)
	})
}

// takeMemory makes a pod take memory until the kernel kills it. The answer does not come, because the server
// is killed before it.
func takeMemory(t *testing.T, p *corev1.Pod, bytes int64) {
	t.Helper()
	eventually(t, p.Name+" takes memory", 20*time.Second, func() error {
		err := sendCommand(p, fmt.Sprintf("/hold?bytes=%d", bytes))
		failed, ok := errors.AsType[*net.OpError](err)
		switch {
		case err == nil:
			t.Fatalf("pod %s has %d MiB, and the kernel did not kill it", p.Name, bytes/mi)
		case ok && failed.Op == "dial":
			return err
		case !ok && !errors.Is(err, io.EOF):
			t.Fatal(err)
		}
		return nil
	})
}

// TestNodeRunsOut has the kernel kill because the whole node has no memory left. The kubelet stands
// still meanwhile: it would evict the pod before.
func TestNodeRunsOut(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("it would take the memory of this machine: -node=v2")
	}
	w.agent(t, "observe")
	namespace := w.namespace(t, "node-runs-out")
	greedy := w.create(t, namespace, w.pod("greedy", "", nil))["greedy"]
	w.inGuest(t, "systemctl kill --signal=STOP kubelet")
	resume := sync.OnceFunc(func() { w.inGuest(t, "systemctl kill --signal=CONT kubelet") })
	defer resume()
	takeMemory(t, greedy, w.capacity-200*mi) // the kernel promises no process more than all memory
	resume()
	w.endedBy(t, namespace+"/greedy", death.NodeShortage)
}
