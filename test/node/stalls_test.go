//go:build e2e

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/explain/slow"
)

// A phase is a time in which the pods of TestStalls do something. What each of them waits for follows from it.
type phase struct {
	name string
	// burn is how much CPU pods want, in millicores. A pod that is not here is idle.
	burn map[string]int
	// read has scripts that run in the cgroup of a pod's container, again and again.
	read  map[string]string
	cases []stallCase
}

// A stallCase is the truth about pods in a phase. An empty cause means that the pod waits for nothing, or that
// nobody is the cause.
type stallCase struct {
	pods      []string
	resource  slow.Resource // whose parts are compared; none: the resource that the pod waited for most
	cause     slow.Cause
	neighbour string // who is named first; empty: nobody may be named
	forced    bool   // the kernel must have counted the wait: an answer that there is none is wrong
}

// saturated is the share of the node's CPU time from which on its own processes are a cause, too. An emulated node
// needs most of its CPUs for the kubelet, containerd and weir.
const saturated = 0.85

// hardly is the share of the time up to which a pod hardly waits, by the kernel's count: an answer is about half a
// minute of a phase, and weir says nothing of less than half of this.
const hardly = 0.02

// truth returns a case as text for the table.
func (c *stallCase) truth() string {
	switch {
	case c.cause == "":
		return "nothing, or Nobody"
	case c.cause == slow.Neighbours:
		return "Neighbours: " + c.neighbour
	case c.neighbour != "":
		return string(c.cause) + ", and " + c.neighbour + " for the rest"
	}
	return string(c.cause)
}

// stall returns the stall of an answer that the case is about; nil if the pod waited for nothing.
func (c *stallCase) stall(s *slow.Slow) *slow.Stall {
	about := c.resource
	if about == "" {
		about = s.Resource
	}
	for i := range s.Stalls {
		if stall := &s.Stalls[i]; stall.Resource == about && stall.Some != nil && *stall.Some >= 0.01 && len(stall.Parts) > 0 {
			return stall
		}
	}
	return nil
}

// check compares an answer with the truth of a phase on a node of which a share of the CPU time was used, and with
// what the kernel counted in the phase. It returns the answer as text, whether it is right, and whether it names a pod
// that was idle.
func (c *stallCase) check(s *slow.Slow, p *phase, used float64, counted kernelCounts) (answer string, right, misnamed bool) {
	stall := c.stall(s)
	if stall == nil {
		return "nothing", c.cause == "" || !c.forced && counted.wait(s.Pod, c.resource) < hardly, false
	}
	answer = fmt.Sprintf("%s %.0f%%:", stall.Resource, 100**stall.Some)
	for _, part := range stall.Parts {
		if part.Share >= 0.01 {
			answer += fmt.Sprintf(" %s %.0f%%", part.Cause, 100*part.Share)
		}
	}
	var named []string
	for _, n := range stall.Neighbours {
		named = append(named, n.Pod)
		misnamed = misnamed || n.Namespace == s.Namespace && p.isIdle(n.Pod)
	}
	if named != nil {
		answer += " (" + strings.Join(named, ", ") + ")"
	}
	cause := stall.Parts[0].Cause
	// The processes of a node that is used up take CPU from its pods, and weir's pods from the others.
	byNode := stall.Resource == slow.CPU && used >= saturated && (cause == slow.System || cause == slow.Neighbours)
	switch c.cause {
	case "":
		right = cause == slow.Nobody || byNode
	case slow.Neighbours:
		right = (cause == c.cause || byNode) && (slices.Contains(named, c.neighbour) || stall.Resource == slow.CPU && counted.isSmall(c.neighbour, s.Pod))
	case slow.OwnUse:
		right = cause == c.cause || byNode
	default: // nobody is named for what an own limit costs
		right = cause == c.cause && (named == nil || c.neighbour != "")
	}
	return answer, right && !misnamed, misnamed
}

// isIdle reports whether a pod does nothing in a phase.
func (p *phase) isIdle(pod string) bool { return p.burn[pod] == 0 && p.read[pod] == "" }

// all returns a load that pods have alike.
func all[V any](v V, pods ...string) map[string]V {
	m := map[string]V{}
	for _, p := range pods {
		m[p] = v
	}
	return m
}

func with[V any](a, b map[string]V) map[string]V {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// The files of pods that read what does not fit into their limits on memory. They are not in the page cache before:
// what is there counts for the cgroup that brought it in, and costs those that read it nothing.
var stallFiles = map[string]int{"/stalls": 128, "/stalls-m48": 64} // MiB

const (
	reclaim48 = "cat /stalls-m48 >/dev/null"
	reclaim96 = "cat /stalls >/dev/null"
	// Far below the pod's limit, as the kubelet's MemoryQoS sets one.
	reclaimHigh = "echo 40M >/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.high; " + reclaim96
	// Without the page cache, so that each read is one of the disk.
	readMuch   = "dd if=/stalls of=/dev/null bs=1M iflag=direct"
	readLittle = "dd if=/stalls of=/dev/null bs=4k count=20 iflag=direct; sleep 0.1"
)

// phases are what TestStalls does, one after another, on a node with two CPUs. Its pods are those of stallPods.
func phases() []phase {
	limited := []string{"l60", "l120"}
	return []phase{
		{"two pods want 900m and have limits of 60m and 120m", all(900, limited...), nil, []stallCase{{pods: limited, cause: slow.OwnLimit}}},
		{"hog wants 2 CPUs, two pods want 200m and 400m", map[string]int{"f1": 200, "f2": 400, "hog": 2000}, nil, []stallCase{
			{pods: []string{"f1", "f2"}, cause: slow.Neighbours, neighbour: "hog"}, {pods: []string{"hog"}, cause: slow.OwnUse},
		}},
		{"hog has left; two pods want 100m", all(100, "f1", "f2"), nil, nil},
		{"both: two pods at their limits of 60m and 120m, and hog wants 2 CPUs", with(all(900, limited...), map[string]int{"hog": 2000}), nil, []stallCase{
			{pods: limited, cause: slow.OwnLimit, neighbour: "hog"}, {pods: []string{"hog"}, cause: slow.OwnUse},
		}},
		{"two pods read files that are larger than their limits on memory, of 48Mi and 96Mi", nil, map[string]string{"m48": reclaim48, "m96": reclaim96}, []stallCase{
			{pods: []string{"m48", "m96"}, resource: slow.Memory, cause: slow.OwnLimit, forced: true}, {pods: []string{"f1", "f2"}, resource: slow.Memory},
		}},
		{"m96 has memory.high 40Mi, and reads a file that is larger", nil, map[string]string{"m96": reclaimHigh}, []stallCase{
			{pods: []string{"m96"}, resource: slow.Memory, cause: slow.Nobody, forced: true}, // no kubelet reports memory.high
		}},
		{"hog reads from the disk without a pause, f1 reads little", nil, map[string]string{"f1": readLittle, "hog": readMuch}, []stallCase{
			{pods: []string{"hog"}, resource: slow.IO, cause: slow.OwnUse}, {pods: []string{"f1"}, resource: slow.IO, cause: slow.Neighbours, neighbour: "hog"},
		}},
		{"hog wants 4 CPUs, the others are idle", map[string]int{"hog": 4000}, nil, []stallCase{{pods: []string{"hog"}, cause: slow.OwnUse}}},
		{"two pods want 2 CPUs and have limits of 60m and 120m", all(2000, limited...), nil, []stallCase{{pods: limited, cause: slow.OwnLimit}}},
		{"f2 wants 2 CPUs, two pods want 300m", map[string]int{"f1": 300, "hog": 300, "f2": 2000}, nil, []stallCase{
			{pods: []string{"f1", "hog"}, cause: slow.Neighbours, neighbour: "f2"}, {pods: []string{"f2"}, cause: slow.OwnUse},
		}},
		{"f2 reads from the disk without a pause", nil, map[string]string{"f2": readMuch}, []stallCase{
			{pods: []string{"f2"}, resource: slow.IO, cause: slow.OwnUse}, {pods: []string{"f1", "hog"}, resource: slow.IO},
		}},
		{"l120 is at its limit while hog reads from the disk", map[string]int{"l120": 900}, map[string]string{"hog": readMuch}, []stallCase{
			{pods: []string{"l120"}, cause: slow.OwnLimit}, {pods: []string{"hog"}, resource: slow.IO, cause: slow.OwnUse},
		}},
		{"two pods want 200m and have limits of 60m and 120m", all(200, limited...), nil, []stallCase{{pods: limited, cause: slow.OwnLimit}}},
		{"all have left", nil, nil, nil},
	}
}

// idle returns the cases of the pods that are in no case of a phase: they wait for nothing.
func (p *phase) idle(pods map[string]*corev1.Pod) []stallCase {
	var rest []string
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		if !slices.ContainsFunc(p.cases, func(c stallCase) bool { return slices.Contains(c.pods, pod) }) {
			rest = append(rest, pod)
		}
	}
	return []stallCase{{pods: rest}}
}

// TestStalls forces waits whose cause is known from how they are made, and compares what weir says with it:
// 95% must be right, and no pod may be named that was idle.
func TestStalls(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("the kernel has no stalls of pods on cgroup version 1: -node=v2")
	}
	if err := w.install(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	namespace := w.namespace(t, "stalls")
	for name, size := range stallFiles {
		w.inGuest(t, fmt.Sprintf("dd if=/dev/zero of=%s bs=1M count=%d oflag=direct 2>/dev/null", name, size))
	}
	t.Cleanup(func() { w.inGuest(t, "rm /stalls*") })
	pods := map[string]*corev1.Pod{}
	for two := range slices.Chunk(w.stallPods(), 2) { // more at once take the node minutes
		maps.Copy(pods, w.create(t, namespace, two...))
	}
	var table []string
	total, right, misnamed := 0, 0, 0
	for _, p := range phases() {
		t.Run(p.name, func(t *testing.T) {
			p.cases = append(p.cases, p.idle(pods)...)
			w.begin(t, pods, &p)
			before, counts := w.cpuTimes(t), w.kernelCounts(t, pods)
			began := time.Now() // the loads of the last phase have ended
			for i := range p.cases {
				c := &p.cases[i]
				for _, pod := range c.pods {
					s, err := w.stallsOf(t, namespace, pod, began)
					if err != nil {
						t.Errorf("%s: pod %s: %v", p.name, pod, err)
						continue
					}
					used, counted := w.cpuUsed(t, before), w.kernelCounts(t, pods).since(counts)
					answer, ok, wrongName := c.check(s, &p, used, counted)
					total++
					if wrongName {
						misnamed++
					}
					verdict := "**wrong**"
					if ok {
						right++
						verdict = "right"
					} else {
						t.Logf("%s: pod %s: want %s\n%s\n  %s", p.name, pod, c.truth(), s.Summary, strings.Join(s.Evidence, "\n  "))
					}
					row := fmt.Sprintf("| %s | %s | %s | %.0f%% | %s | %s | %s |", p.name, pod, c.truth(), 100*used, counted.text(pod), answer, verdict)
					table = append(table, row)
					t.Log(row)
				}
			}
			w.finish(t, pods, &p)
			t.Logf("%.0fs: %s: %d of %d right", time.Since(began).Seconds(), p.name, right, total)
		})
	}
	t.Logf("%d of %d right\n%s", right, total, strings.Join(table, "\n"))
	if 100*right < 95*total || misnamed > 0 {
		t.Errorf("%d of %d are right, and %d times a pod is named that was idle", right, total, misnamed)
	}
}

// cpuTimes returns the idle time of the node's CPUs and their time, in ticks, from the kernel.
func (w *testCluster) cpuTimes(t *testing.T) (times [2]float64) {
	t.Helper()
	stat, err := w.GuestOutput(t.Context(), "grep", "^cpu ", "/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(stat)
	for i, field := range fields[1:9] { // guest time is a part of user time
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		if times[1] += ticks; i == 3 || i == 4 { // idle, and waiting for a disk
			times[0] += ticks
		}
	}
	return times
}

// cpuUsed returns the share of the CPU time that was used since then.
func (w *testCluster) cpuUsed(t *testing.T, before [2]float64) float64 {
	t.Helper()
	now := w.cpuTimes(t)
	return 1 - (now[0]-before[0])/max(1, now[1]-before[1])
}

// kernelCounts are what the kernel has counted of pods and, without a name, of all pods together: CPU time and waits
// by resource, in seconds.
type kernelCounts struct {
	at   time.Time
	pods map[string]kernelCount
}

type kernelCount struct {
	cpu   float64
	waits [3]float64 // by waitFiles
}

// waitFiles are the kernel's files of waits.
var waitFiles = [3]slow.Resource{slow.CPU, slow.Memory, slow.IO}

// kernelCounts reads the counts of pods.
func (w *testCluster) kernelCounts(t *testing.T, pods map[string]*corev1.Pod) kernelCounts {
	t.Helper()
	script := "count() { for f in cpu.stat cpu.pressure memory.pressure io.pressure; do sed \"s/^/$1 $f /\" $2/$f; done; }; count all /sys/fs/cgroup/kubepods.slice;"
	for name, p := range pods {
		script += fmt.Sprintf(" count %s %s;", name, w.cgroups(t, p, "")[0])
	}
	out, err := w.GuestOutput(t.Context(), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	k := kernelCounts{time.Now(), map[string]kernelCount{}}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		c := k.pods[fields[0]]
		microseconds, err := strconv.ParseFloat(strings.TrimPrefix(fields[len(fields)-1], "total="), 64)
		switch {
		case err != nil:
			t.Fatalf("the kernel wrote %q", line)
		case fields[2] == "usage_usec":
			c.cpu = microseconds / 1e6
		case fields[2] == "some":
			resource, _, _ := strings.Cut(fields[1], ".")
			c.waits[slices.Index(waitFiles[:], slow.Resource(resource))] = microseconds / 1e6
		}
		k.pods[fields[0]] = c
	}
	return k
}

// since returns what was counted since then, for each second.
func (k kernelCounts) since(then kernelCounts) kernelCounts {
	seconds := k.at.Sub(then.at).Seconds()
	rates := kernelCounts{k.at, map[string]kernelCount{}}
	for name, c := range k.pods {
		before := then.pods[name]
		c.cpu = (c.cpu - before.cpu) / seconds
		for i := range c.waits {
			c.waits[i] = (c.waits[i] - before.waits[i]) / seconds
		}
		rates.pods[name] = c
	}
	return rates
}

// wait returns the share of the time in which a pod waited for a resource, or for that which it waited for most.
func (k kernelCounts) wait(pod string, r slow.Resource) float64 {
	waits := k.pods[pod].waits
	if i := slices.Index(waitFiles[:], r); i >= 0 {
		return waits[i]
	}
	return slices.Max(waits[:])
}

// isSmall reports whether a pod used less than a fifth of the CPU that all pods but one used: less than what is named.
func (k kernelCounts) isSmall(pod, without string) bool {
	return k.pods[pod].cpu < (k.pods["all"].cpu-k.pods[without].cpu)/5
}

// text returns a pod's counts for the table.
func (k kernelCounts) text(pod string) string {
	c := k.pods[pod]
	return fmt.Sprintf("cpu %.0f%%, memory %.0f%%, io %.0f%%; used %.0fm", 100*c.waits[0], 100*c.waits[1], 100*c.waits[2], 1000*c.cpu)
}

// stallPods returns the pods of TestStalls. Their requests are small, so that all have the same weight.
func (w *testCluster) stallPods() (pods []*corev1.Pod) {
	add := func(name string, limits corev1.ResourceList) {
		p := w.pod(name, "", requests(8*mi, mi))
		p.Spec.Containers[0].Resources.Limits = limits
		pods = append(pods, p)
	}
	for _, n := range []int{60, 120} {
		add(fmt.Sprint("l", n), corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(n), resource.DecimalSI)})
	}
	for _, n := range []int{48, 96} {
		add(fmt.Sprint("m", n), corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(n)*mi, resource.BinarySI)})
	}
	for _, name := range []string{"f1", "f2", "hog"} {
		add(name, nil)
	}
	return pods
}

// begin starts what the pods do in a phase.
func (w *testCluster) begin(t *testing.T, pods map[string]*corev1.Pod, p *phase) {
	t.Helper()
	for pod, millicores := range p.burn {
		orderLoad(t, pods[pod], fmt.Sprintf("/burn?millicores=%d", millicores))
	}
	for pod, script := range p.read {
		dir := w.cgroups(t, pods[pod], pods[pod].Status.ContainerStatuses[0].ContainerID)[0]
		w.inGuest(t, fmt.Sprintf("setsid sh -c 'echo $$ >%s/cgroup.procs; echo $$ >/run/stalls-%s; while :; do %s; done' >/dev/null 2>&1 </dev/null &", dir, pod, script))
	}
}

// finish ends it.
func (w *testCluster) finish(t *testing.T, pods map[string]*corev1.Pod, p *phase) {
	t.Helper()
	for pod := range p.burn {
		orderLoad(t, pods[pod], "/burn?millicores=0")
	}
	for pod := range p.read {
		// The group has the script and what reads. A reader that memory.high slows down dies seconds later.
		w.inGuest(t, fmt.Sprintf("group=$(cat /run/stalls-%s); kill -9 -$group; for i in $(seq 300); do kill -0 -$group 2>/dev/null || break; sleep 0.2; done", pod))
	}
}

// stallsOf returns what weir says about a pod, of a time after a phase has begun.
func (w *testCluster) stallsOf(t *testing.T, namespace, pod string, began time.Time) (*slow.Slow, error) {
	t.Helper()
	tick := time.NewTicker(3 * time.Second) // the node has little CPU to answer with
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	unknown := 0
	for {
		s, err := w.askSlow(t, namespace, pod)
		if err == nil && (s.From.Before(began.Add(2*time.Second)) || s.MeasuredSeconds < 20) {
			err = fmt.Errorf("%.0fs are measured, from %.0fs after it began on", s.MeasuredSeconds, s.From.Sub(began).Seconds())
		}
		if err == nil && len(s.NotKnown) > 0 && unknown < 3 { // a reading of the busy node came late: as users do, ask again
			unknown++
			err = errors.New(s.NotKnown[0])
		}
		if err == nil {
			return s, nil
		}
		select {
		case <-t.Context().Done():
			return nil, t.Context().Err()
		case <-deadline:
			return nil, err
		case <-tick.C:
		}
	}
}

// askSlow asks weir through the API server.
func (w *testCluster) askSlow(t *testing.T, namespace, pod string) (*slow.Slow, error) {
	t.Helper()
	out, err := w.kube.RESTClient().Get().AbsPath("/apis/weir.dev/v1alpha1/namespaces/"+namespace+"/slow").Param("pod", pod).Param("window", "30s").DoRaw(t.Context())
	if err != nil {
		return nil, err
	}
	var r slow.Report
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("read weir's report: %w", err)
	}
	if len(r.Pods) != 1 {
		return nil, errors.New(r.Summary)
	}
	return &r.Pods[0], nil
}
