//go:build e2e

package node

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

var (
	latencyRuns = flag.Int("latency-runs", 3, "TestLatency: runs of each row")
	latencyOf   = flag.String("latency-of", "weir", "TestLatency: who is measured, with commas between: weir, earlyoom, kubelet, weir-swap, systemd-oomd-swap")
	latencyCSV  = flag.String("latency-csv", "", "TestLatency: file to which the runs are added")
)

// mostDelay is how long half of weir's decisions may take after a crossing. The slowest only show
// how long an emulated machine waits for a processor.
const mostDelay = 150 * time.Millisecond

// An actor evicts or kills pods when memory is short.
type actor struct {
	name string
	// args are arguments for test/crossing. The first is the threshold.
	args []string
	// start makes it the only one that acts at the threshold. before is called before a batch of pods
	// is created.
	start, before func(t *testing.T)
	// rest is the time between two runs.
	rest time.Duration
	// swap says that the threshold is of the swap, which is used when the memory is full.
	swap bool
}

// The swap of the virtual machine, and how much of it is free at the threshold.
const (
	swapSize = 1024 * mi
	swapFree = swapSize * 9 / 10
)

// latency is the answer of test/crossing.
type latency struct {
	DecisionMs, ReadMs, SignalMs, KillMs, BackMs float64
	DecisionMiB, LowestMiB                       int64
	FillMiBs, SlowestSampleMs, StalledMs         float64
	KernelOOM                                    bool
}

// batch is how many pods are created at once. Each run takes one. An agent evicts at most that many
// in ten minutes; a new agent begins to count again.
const batch = 10

// TestLatency fills memory past a threshold, slowly and as fast as the machine can, and measures
// when whoever acts decides, when the pod's process gets a signal, and when memory is back. Others
// do the same with the swap, when no memory is left.
func TestLatency(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("it measures a node with cgroup version 2: -node=v2")
	}
	program := filepath.Join(t.TempDir(), "crossing")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, root+"/test/crossing").CombinedOutput(); err != nil {
		t.Fatalf("build test/crossing: %v: %s", err, out)
	}
	w.copyToGuest(t, program, "/root/crossing")
	namespace := w.namespace(t, "latency")
	for _, a := range w.actors() {
		if !slices.Contains(strings.Split(*latencyOf, ","), a.name) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			a.start(t)
			rates := []int{20, 0}
			if a.swap {
				w.swapOn(t, swapSize)
				w.letMemoryFill(t)
				rates = []int{0} // the swap is not fast enough for a difference
			}
			for _, rate := range rates {
				t.Run(fmt.Sprintf("%d MiB per second", rate), func(t *testing.T) { w.measureLatency(t, namespace, a, rate) })
			}
		})
	}
}

func (w *testCluster) measureLatency(t *testing.T, namespace string, a *actor, rate int) {
	var all []*latency
	for len(all) < *latencyRuns {
		var hogs []*corev1.Pod
		for i := range min(batch, *latencyRuns-len(all)) {
			p := w.pod(fmt.Sprintf("%s-%d-%d", a.name, rate, len(all)+i), "", requests(10*mi, mi))
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} // the kubelet may be stopped
			hogs = append(hogs, p)
		}
		a.before(t)
		running := w.create(t, namespace, hogs...)
		for _, hog := range hogs {
			l := w.cross(t, running[hog.Name], a, rate)
			t.Logf("%s: %+v", hog.Name, *l)
			all = append(all, l)
			appendLatency(t, a.name, rate, len(all), l)
			select {
			case <-t.Context().Done():
			case <-time.After(a.rest):
			}
		}
	}
	if !strings.HasPrefix(a.name, "weir") {
		return
	}
	var delays []time.Duration
	for i, l := range all {
		if l.DecisionMs == 0 {
			t.Errorf("run %d: %+v: want that weir evicts the pod", i+1, *l)
		}
		delays = append(delays, time.Duration(l.DecisionMs*float64(time.Millisecond)))
	}
	slices.Sort(delays)
	if middle := delays[len(delays)/2]; !a.swap && middle > mostDelay { // without memory, reading takes longer
		t.Errorf("half of the decisions came within %v, want %v", middle, mostDelay)
	}
}

// cross lets a pod cross the threshold.
func (w *testCluster) cross(t *testing.T, p *corev1.Pod, a *actor, rate int) *latency {
	t.Helper()
	pid, err := w.readFile(t.Context(), w.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]+"/cgroup.procs")
	if err != nil || strings.Count(pid, "\n") != 1 {
		t.Fatalf("the processes of %s: got %q, %v; want one", p.Name, pid, err)
	}
	pid = strings.TrimSpace(pid)
	if a.swap {
		w.inGuest(t, "swapoff /swap && swapon /swap") // nothing is left in it from the run before
		w.letSwap(t, p)
	}
	out, err := w.GuestOutput(t.Context(), append([]string{
		"nice", "-n", "-20", "/root/crossing", "--rate=" + strconv.Itoa(rate), "--pid=" + pid,
		"--url=http://" + p.Status.PodIP + ":8080", "--node=" + w.Node(), "--pod=" + p.Namespace + "/" + p.Name,
	}, a.args...)...)
	if err != nil {
		t.Fatal(err)
	}
	l := &latency{}
	if err := json.Unmarshal([]byte(out), l); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.inGuest(t, "kill -9 "+pid+" || true") // if it was spared
	return l
}

// actors returns those who can be measured. The kubelet's threshold is below that of the others.
func (w *testCluster) actors() []*actor {
	below := func(b int64) string { return fmt.Sprintf("--below=%d", b/mi) }
	own := w.memory + 300*mi
	nothing := func(*testing.T) {}
	observe := func(t *testing.T) { w.agent(t, "observe") }
	fillSwap := []string{below(swapFree), "--signal=swapFree", "--lead=300", "--wait=20s"}
	weir := &actor{name: "weir", args: []string{below(own), "--agent=http://127.0.0.1:8087"}}
	weir.rest = 5 * time.Second // an agent waits for 10 s before it evicts the next pod
	weir.start = func(t *testing.T) { w.agent(t, "kill", "HARD", fmt.Sprintf("memory.available<%d", own)) }
	weir.before = func(t *testing.T) { w.restartAgent(t) }
	return []*actor{
		weir,
		{
			name: "earlyoom",
			args: []string{below(own), "--signal=memAvailable", "--journal=earlyoom", "--match=low memory"},
			start: func(t *testing.T) {
				observe(t)
				w.inGuest(t, fmt.Sprintf(`echo 'EARLYOOM_ARGS="-M %[1]d,%[1]d -r 0"' >/etc/default/earlyoom && systemctl restart earlyoom`, own>>10))
				t.Cleanup(func() { w.inGuest(t, "systemctl stop earlyoom") })
			},
			before: nothing,
		},
		{
			name: "kubelet", args: []string{below(w.memory), "--journal=kubelet", "--match=attempting to reclaim"},
			start: observe, before: nothing,
		},
		{
			name: "weir-swap", swap: true, args: append(fillSwap, "--agent=http://127.0.0.1:8087"),
			start:  func(t *testing.T) { w.agent(t, "kill", "HARD", fmt.Sprintf("swap.available<%d", swapFree)) },
			before: weir.before, rest: weir.rest,
		},
		{
			// It says what it killed when it has done so.
			name: "systemd-oomd-swap", swap: true, args: append(fillSwap, "--journal=systemd-oomd", "--match=Killed"),
			start: func(t *testing.T) {
				observe(t)
				w.inGuest(t, fmt.Sprintf(`mkdir -p /etc/systemd/oomd.conf.d && printf '[OOM]\nSwapUsedLimit=%d%%%%\n' >/etc/systemd/oomd.conf.d/test.conf &&
systemctl set-property --runtime -- -.slice ManagedOOMSwap=auto && systemctl set-property --runtime kubepods.slice ManagedOOMSwap=kill && systemctl restart systemd-oomd`, 100-100*swapFree/swapSize))
				t.Cleanup(func() { w.inGuest(t, "systemctl stop systemd-oomd.socket systemd-oomd") })
			},
			before: nothing,
		},
	}
}

// letMemoryFill takes the kubelet's threshold of memory away until the end of the test: it would
// evict before the swap is used.
func (w *testCluster) letMemoryFill(t *testing.T) {
	t.Helper()
	const config = "/etc/kubernetes/kubelet.yaml"
	w.inGuest(t, fmt.Sprintf(`cp %[1]s %[1]s.kept && sed -i 's/\("memory.available": "\)[^"]*/\10%%/' %[1]s && grep -q '"memory.available": "0%%"' %[1]s && systemctl restart kubelet`, config))
	t.Cleanup(func() { w.inGuest(t, fmt.Sprintf("mv %[1]s.kept %[1]s && systemctl restart kubelet", config)) })
}

// restartAgent deletes the agent's pod, and returns when its successor has read the node.
func (w *testCluster) restartAgent(t *testing.T) {
	t.Helper()
	old := w.agentPod(t)
	w.kubectl(t, "delete", "pod", "-n", agents, old.Name, "--wait")
	deleted := time.Now()
	eventually(t, "a new agent reads the node", time.Minute, func() error {
		r, err := w.report(t.Context())
		if err == nil && !r.DecidedAt.After(deleted) {
			err = fmt.Errorf("it is %s: %s", r.State, r.Summary)
		}
		return err
	})
}

// inGuest runs a script in the virtual machine.
func (w *testCluster) inGuest(t *testing.T, script string) {
	t.Helper()
	if _, err := w.GuestOutput(context.WithoutCancel(t.Context()), "sh", "-c", script); err != nil {
		t.Error(err)
	}
}

// latencyColumns are the columns of the file of -latency-csv. The fields of
// test/crossing's answer say what they mean.
var latencyColumns = []string{
	"actor", "rate", "run", "decision_ms", "read_ms", "signal_ms", "kill_ms", "back_ms",
	"decision_mib", "lowest_mib", "fill_mib_s", "slowest_sample_ms", "stalled_ms", "kernel_oom",
}

// appendLatency adds a run to the file of -latency-csv.
func appendLatency(t *testing.T, name string, rate, run int, l *latency) {
	if *latencyCSV == "" {
		return
	}
	f, err := os.OpenFile(*latencyCSV, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
	out := csv.NewWriter(f)
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		_ = out.Write(latencyColumns) // an error comes again from Flush
	}
	if err := out.Write([]string{
		name, strconv.Itoa(rate), strconv.Itoa(run), text(l.DecisionMs), text(l.ReadMs), text(l.SignalMs), text(l.KillMs), text(l.BackMs),
		fmt.Sprint(l.DecisionMiB), fmt.Sprint(l.LowestMiB), text(l.FillMiBs), text(l.SlowestSampleMs), text(l.StalledMs), fmt.Sprint(l.KernelOOM),
	}); err != nil {
		t.Fatal(err)
	}
	if out.Flush(); out.Error() != nil {
		t.Fatal(out.Error())
	}
}

// copyToGuest copies a program into the virtual machine.
func (w *testCluster) copyToGuest(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Guest(t.Context(), harness.GuestCommand{
		Args: []string{"sh", "-c", `cat >"$1" && chmod 755 "$1"`, "sh", to}, Stdin: bytes.NewReader(b),
	}); err != nil {
		t.Fatal(err)
	}
}
