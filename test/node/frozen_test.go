//go:build e2e

package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// A kernelFigure is a metric of the agent's /metrics/cadvisor, and how it
// follows from a file of a version 2 cgroup. scale is the number of the file's
// units in one of the metric's.
type kernelFigure struct {
	metric, file, field string
	scale               float64
}

var kernelFigures = []kernelFigure{
	{"container_memory_usage_bytes", "memory.current", "", 1},
	{"container_memory_cache", "memory.stat", "file", 1},
	{"container_memory_rss", "memory.stat", "anon", 1},
	{"container_memory_mapped_file", "memory.stat", "file_mapped", 1},
	{"container_memory_swap", "memory.swap.current", "", 1},
	{"container_cpu_usage_seconds_total", "cpu.stat", "usage_usec", 1e6},
	{"container_cpu_user_seconds_total", "cpu.stat", "user_usec", 1e6},
	{"container_cpu_system_seconds_total", "cpu.stat", "system_usec", 1e6},
	{"container_threads", "pids.current", "", 1},
	{"container_pressure_cpu_waiting_seconds_total", "cpu.pressure", "some", 1e6},
	{"container_pressure_memory_waiting_seconds_total", "memory.pressure", "some", 1e6},
	{"container_pressure_memory_stalled_seconds_total", "memory.pressure", "full", 1e6},
	{"container_pressure_io_waiting_seconds_total", "io.pressure", "some", 1e6},
	{"container_pressure_io_stalled_seconds_total", "io.pressure", "full", 1e6},
}

// TestFrozen stops pods of each QoS class. Then the agent must report what the
// files of their cgroups say, to the byte and to the microsecond. A part of one
// pod's memory is in the swap.
func TestFrozen(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("it reads files of cgroup version 2: -node=v2")
	}
	w.agent(t, "observe")
	namespace := w.namespace(t, "frozen")
	busy := []string{"use", "--millicores=50", fmt.Sprintf("--bytes=%d", 20*mi)}
	guaranteed := w.pod("guaranteed", "", requests(64*mi, mi), busy...)
	// Its limit holds for the start of the container too, which takes long with little CPU.
	guaranteed.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
	guaranteed.Spec.Containers[0].Resources.Limits = guaranteed.Spec.Containers[0].Resources.Requests
	pods := w.create(t, namespace, guaranteed, w.pod("burstable", "", requests(32*mi, mi), busy...), w.pod("besteffort", "", nil, busy...))

	names := slices.Sorted(maps.Keys(pods))
	dirs := map[string]*corev1.Pod{} // the cgroups of pods and of their containers
	for _, name := range names {
		p := pods[name]
		w.freeze(t, p)
		dir := w.cgroups(t, p, "")[0]
		dirs[dir], dirs[w.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]] = p, p
	}
	w.swapOut(t, pods["burstable"])
	// Exits of the processes that began before are counted late, so the files may change at first.
	eventually(t, "the agent reports what the kernel counts", 50*time.Second, func() error {
		before, err := w.kernelFiles(t.Context(), dirs)
		if err != nil {
			return err
		}
		if err := w.compareFrozen(t, dirs, parseKernelFiles(before)); err != nil {
			return err
		}
		after, err := w.kernelFiles(t.Context(), dirs)
		if err == nil && after != before {
			err = fmt.Errorf("the files changed meanwhile: %s", differingLines(before, after))
		}
		return err
	})
	eventually(t, "kubectl top shows the pod's swap", time.Minute, func() error {
		out, _, err := w.Kubectl(t.Context(), "top", "pods", "-n", namespace, "--show-swap", "--no-headers")
		if err != nil {
			return err
		}
		for row := range strings.Lines(out) {
			if cells := strings.Fields(row); len(cells) == 4 && cells[0] == "burstable" && cells[3] != "0Mi" {
				t.Logf("kubectl top pods --show-swap:\n%s", out)
				return nil
			}
		}
		return fmt.Errorf("kubectl top shows no swap of burstable:\n%s", out)
	})
}

// swapOn gives the virtual machine so many bytes of swap until the end of the test.
func (w *testCluster) swapOn(t *testing.T, bytes int64) {
	t.Helper()
	w.inGuest(t, fmt.Sprintf("fallocate -l %d /swap && chmod 600 /swap && mkswap /swap >/dev/null && swapon /swap", bytes))
	t.Cleanup(func() { w.inGuest(t, "swapoff /swap && rm /swap") })
}

// letSwap lets a pod and its container use all of the swap; the kubelet lets no pod do so.
func (w *testCluster) letSwap(t *testing.T, p *corev1.Pod) {
	t.Helper()
	w.inGuest(t, fmt.Sprintf("for d in %s %s; do echo max >$d/memory.swap.max || exit 1; done",
		w.cgroups(t, p, "")[0], w.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]))
}

// swapOut gives the virtual machine 256 MiB of swap until the end of the test, and
// makes the kernel move memory of a pod's container into it.
func (w *testCluster) swapOut(t *testing.T, p *corev1.Pod) {
	t.Helper()
	w.swapOn(t, 256*mi)
	w.letSwap(t, p)
	pod := w.cgroups(t, p, "")[0]
	// The kernel may move less than it is asked to, which is an error.
	w.inGuest(t, fmt.Sprintf("echo 8M >%s/memory.reclaim || true", pod))
	for _, dir := range []string{pod, w.cgroups(t, p, p.Status.ContainerStatuses[0].ContainerID)[0]} {
		if used, err := w.readFile(t.Context(), dir+"/memory.swap.current"); err != nil || strings.TrimSpace(used) == "0" {
			t.Errorf("%s has %q bytes in the swap, %v; want some", dir, used, err)
		}
	}
	const capacity = `weir_eviction_signal_capacity{signal="swap.available"} 2.68431`
	eventually(t, "the agent knows the swap", 20*time.Second, func() error {
		page, err := w.askAgent(t.Context(), "/metrics")
		if err == nil && !strings.Contains(page, capacity) {
			err = fmt.Errorf("its metrics lack %s", capacity)
		}
		return err
	})
}

// differingLines returns the lines of after that before lacks.
func differingLines(before, after string) string {
	had := map[string]bool{}
	for line := range strings.Lines(before) {
		had[line] = true
	}
	var b strings.Builder
	for line := range strings.Lines(after) {
		if !had[line] {
			b.WriteString(line)
		}
	}
	return b.String()
}

// freeze stops the processes of a pod until the end of the test.
func (w *testCluster) freeze(t *testing.T, p *corev1.Pod) {
	t.Helper()
	set := func(ctx context.Context, frozen bool) error {
		group := w.PodCgroup(p.Status.QOSClass, p.UID)
		switch {
		case w.v2:
			value := "0"
			if frozen {
				value = "1"
			}
			_, err := w.GuestOutput(ctx, "sh", "-c", `echo "$2" >"$1/cgroup.freeze"`, "sh", w.cgroups(t, p, "")[0], value)
			return err
		case frozen:
			return group.Freeze()
		default:
			return group.Thaw()
		}
	}
	if err := set(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // a frozen pod cannot end
		if err := set(context.Background(), false); err != nil {
			t.Error(err)
		}
	})
}

// kernelFiles returns the lines of the files of cgroups, each after its path.
func (w *testCluster) kernelFiles(ctx context.Context, dirs map[string]*corev1.Pod) (string, error) {
	args := []string{"grep", "-H", ""}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		for _, file := range []string{"memory.current", "memory.stat", "memory.swap.current", "cpu.stat", "pids.current", "cpu.pressure", "memory.pressure", "io.pressure"} {
			args = append(args, dir+"/"+file)
		}
	}
	// The averages of pressure decay, and the totals do not.
	text, err := w.GuestOutput(ctx, args...)
	return regexp.MustCompile(` avg\d+=[0-9.]+`).ReplaceAllString(text, ""), err
}

// parseKernelFiles returns numbers by path, and after a space the name in the
// file if it has names.
func parseKernelFiles(text string) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		path, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, value, named := strings.Cut(rest, " ")
		if !named {
			name, value = "", rest
		}
		if n, err := strconv.ParseFloat(strings.TrimPrefix(value, "total="), 64); err == nil {
			all[path+" "+name] = n
		}
	}
	return all
}

// compareFrozen compares what the agent reports with the kernel's numbers. Its
// error has every difference.
func (w *testCluster) compareFrozen(t *testing.T, dirs map[string]*corev1.Pod, kernel map[string]float64) error {
	t.Helper()
	page, err := w.askAgent(t.Context(), "/metrics/cadvisor")
	if err != nil {
		return err
	}
	reported := map[string]map[string]float64{}
	series := regexp.MustCompile(`^(\w+)\{.*\bid="([^"]*)".*\} (\S+)`)
	for in := bufio.NewScanner(strings.NewReader(page)); in.Scan(); {
		m := series.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return err
		}
		dir := "/sys/fs/cgroup" + m[2]
		if reported[dir] == nil {
			reported[dir] = map[string]float64{}
		}
		reported[dir][m[1]] += value // one series for each processor
	}
	var different []string
	compared := 0
	check := func(dir, metric string, got float64, found bool, want, tolerance float64) {
		compared++
		if !found || math.Abs(got-want) > tolerance {
			different = append(different, fmt.Sprintf("%s of %s: %v (%v), the kernel has %v", metric, dir, got, found, want))
		}
	}
	for dir := range dirs {
		for _, f := range kernelFigures {
			got, found := reported[dir][f.metric]
			want, known := kernel[dir+"/"+f.file+" "+f.field]
			if !known {
				return fmt.Errorf("%s/%s has no %q", dir, f.file, f.field)
			}
			tolerance := 0.0
			if f.scale > 1 {
				tolerance = 1.5 // the metric is a float of seconds
			}
			check(dir, f.metric, got*f.scale, found, want, tolerance)
		}
		want := max(0, kernel[dir+"/memory.current "]-kernel[dir+"/memory.stat inactive_file"])
		got, found := reported[dir]["container_memory_working_set_bytes"]
		check(dir, "container_memory_working_set_bytes", got, found, want, 0)
	}
	page, err = w.askAgent(t.Context(), "/stats/summary")
	if err != nil {
		return err
	}
	var summary stats.Summary
	if err := json.Unmarshal([]byte(page), &summary); err != nil {
		return fmt.Errorf("read the agent's summary: %w", err)
	}
	byUID := map[string]*stats.PodStats{}
	for i := range summary.Pods {
		byUID[summary.Pods[i].PodRef.UID] = &summary.Pods[i]
	}
	for dir, p := range dirs {
		if strings.HasSuffix(dir, ".scope") {
			continue
		}
		s := byUID[string(p.UID)]
		if s == nil || s.Memory == nil || s.Memory.WorkingSetBytes == nil || s.CPU == nil || s.CPU.UsageCoreNanoSeconds == nil {
			return fmt.Errorf("the agent's summary lacks pod %s, or its memory or CPU", p.Name)
		}
		want := max(0, kernel[dir+"/memory.current "]-kernel[dir+"/memory.stat inactive_file"])
		check(dir, "summary's memory.workingSetBytes", float64(*s.Memory.WorkingSetBytes), true, want, 0)
		check(dir, "summary's cpu.usageCoreNanoSeconds", float64(*s.CPU.UsageCoreNanoSeconds), true, 1000*kernel[dir+"/cpu.stat usage_usec"], 999)
	}
	if len(different) > 0 {
		return fmt.Errorf("%d of %d numbers differ:\n%s", len(different), compared, strings.Join(different, "\n"))
	}
	t.Logf("%d numbers of %d cgroups are the kernel's", compared, len(dirs))
	return nil
}

// askAgent returns the answer of the agent's own server to the administrator.
func (w *testCluster) askAgent(ctx context.Context, path string) (string, error) {
	config := rest.CopyConfig(w.config)
	config.Host, config.Insecure, config.CAData = fmt.Sprintf("https://%s:10290", w.KubeletIP()), true, nil
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s of the agent: %s: %s", path, answer.Status, body)
	}
	return string(body), err
}
