package summary_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/payloadtest"
)

// The reference uses encoding/json with maps, and a table of paths.
type object = map[string]any

var usagePaths = map[string]metric.ID{
	"cpu.usageCoreNanoSeconds": metric.CPUUsage,
	"cpu.psi.some.total":       metric.CPUPressureSome,
	"cpu.psi.full.total":       metric.CPUPressureFull,
	"memory.availableBytes":    metric.MemoryAvailable,
	"memory.usageBytes":        metric.MemoryUsage,
	"memory.workingSetBytes":   metric.MemoryWorkingSet,
	"memory.rssBytes":          metric.MemoryRSS,
	"memory.pageFaults":        metric.MemoryPageFaults,
	"memory.majorPageFaults":   metric.MemoryMajorPageFaults,
	"memory.psi.some.total":    metric.MemoryPressureSome,
	"memory.psi.full.total":    metric.MemoryPressureFull,
	"io.psi.some.total":        metric.IOPressureSome,
	"io.psi.full.total":        metric.IOPressureFull,
	"swap.swapAvailableBytes":  metric.MemorySwapAvailable,
	"swap.swapUsageBytes":      metric.MemorySwap,
	"network.rxBytes":          metric.NetworkRx,
	"network.rxErrors":         metric.NetworkRxErrors,
	"network.txBytes":          metric.NetworkTx,
	"network.txErrors":         metric.NetworkTxErrors,
	"rlimit.maxpid":            metric.ProcessLimit,
	"rlimit.curproc":           metric.ProcessCount,

	"process_stats.process_count":  metric.ProcessCount,
	"ephemeral-storage.usedBytes":  metric.EphemeralStorageUsage,
	"ephemeral-storage.inodesUsed": metric.FilesystemInodesUsed,
}

var fsPaths = map[string]metric.ID{
	"availableBytes": metric.FilesystemAvailable,
	"capacityBytes":  metric.FilesystemLimit,
	"usedBytes":      metric.FilesystemUsage,
	"inodesFree":     metric.FilesystemInodesFree,
	"inodes":         metric.FilesystemInodes,
	"inodesUsed":     metric.FilesystemInodesUsed,
}

var interfacePaths = map[string]metric.ID{
	"rxBytes": metric.NetworkRx, "rxErrors": metric.NetworkRxErrors,
	"txBytes": metric.NetworkTx, "txErrors": metric.NetworkTxErrors,
}

// reference has the values of a summary by keyOf.
type reference map[string][]float64

// keyOf returns the key of a metric of an instance, which has begun at start.
func keyOf(e metric.Entity, uid string, start int64, id metric.ID) string {
	e.Node = ""
	return fmt.Sprint(e, " ", uid, " ", start, " ", id)
}

// decode reads a payload with encoding/json.
func decode(body []byte) (o object, err error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	return o, dec.Decode(&o)
}

// at returns the value at a path of member names, or nil if there is none.
func at(o object, path string) any {
	var v any = o
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(object)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// text returns the string at a path, or an empty one.
func text(o object, path string) string {
	v, _ := at(o, path).(string)
	return v
}

// nameOf returns the name of an interface or volume.
func nameOf(o object) string {
	if name := text(o, "name"); name != "" {
		return name
	}
	return text(o, "id")
}

// objects returns the objects of the list at a path.
func objects(o object, path string) (list []object) {
	all, _ := at(o, path).([]any)
	for _, v := range all {
		if o, ok := v.(object); ok {
			list = append(list, o)
		}
	}
	return list
}

// number returns the number at a path that may be a value of a metric.
func number(o object, path string) (float64, bool) {
	n, ok := at(o, path).(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Float64()
	return v, err == nil
}

// startOf returns the start time of an object, or 0 if it has none.
func startOf(o object) int64 {
	t, err := time.Parse(time.RFC3339, text(o, "startTime"))
	if err != nil {
		return 0
	}
	return max(t.UnixNano(), 0)
}

// entity is what an object is about.
type entity struct {
	metric.Entity
	uid   string
	start int64
}

// values records the values at paths in o as values of e.
func (r reference) values(e entity, o object, prefix string, paths map[string]metric.ID) {
	for path, id := range paths {
		v, ok := number(o, prefix+path)
		if !ok {
			continue
		}
		if strings.Contains(path, "psi") {
			v *= 1000
		}
		key := keyOf(e.Entity, e.uid, e.start, id)
		r[key] = append(r[key], v)
	}
}

// parts records the values of the parts of e.
func (r reference) parts(e entity, o object) {
	for _, v := range objects(o, "network.interfaces") {
		e.Part = "interface:" + nameOf(v)
		r.values(e, v, "", interfacePaths)
	}
	for _, v := range objects(o, "volume") {
		e.Part = "volume:" + nameOf(v)
		r.values(e, v, "", fsPaths)
	}
	for part, path := range map[string]string{"imagefs": "runtime.imageFs.", "containerfs": "runtime.containerFs.", "logs": "logs."} {
		e.Part = "device:" + part
		r.values(e, o, path, fsPaths)
	}
}

func (r reference) container(e entity, o object) {
	e.Name, e.start = text(o, "name"), startOf(o)
	r.values(e, o, "", usagePaths)
	r.values(e, o, "rootfs.", fsPaths)
	r.parts(e, o)
	rootfs, ok1 := number(o, "rootfs.usedBytes")
	logs, ok2 := number(o, "logs.usedBytes")
	if ok1 && ok2 {
		key := keyOf(e.Entity, e.uid, e.start, metric.EphemeralStorageUsage)
		r[key] = append(r[key], rootfs+logs)
	}
}

func (r reference) summary(o object) {
	if node, ok := o["node"].(object); ok {
		e := entity{metric.Entity{Kind: metric.Node}, "", startOf(node)}
		r.values(e, node, "", usagePaths)
		r.values(e, node, "fs.", fsPaths)
		r.parts(e, node)
	}
	for _, c := range objects(o, "node.systemContainers") {
		r.container(entity{Entity: metric.Entity{Kind: metric.System}}, c)
	}
	for _, pod := range objects(o, "pods") {
		e := entity{uid: text(pod, "podRef.uid"), start: startOf(pod)}
		e.Kind, e.Namespace, e.Pod = metric.Pod, metric.Namespace(text(pod, "podRef.namespace")), metric.PodName(text(pod, "podRef.name"))
		r.values(e, pod, "", usagePaths)
		r.parts(e, pod)
		e.Kind = metric.Container
		for _, c := range objects(pod, "containers") {
			r.container(e, c)
		}
	}
}

func TestCapturesAgreeWithReferenceParser(t *testing.T) {
	p := summary.New()
	values, round := 0, 0
	check := func(path string, body []byte) {
		if round++; round%4 != 1 {
			// The reference is slow, so the other captures are only parsed.
			if err := p.Parse(body, payloadtest.Request(), new(metric.Batch)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return
		}
		b, err := payloadtest.Repeatable(t, p, summary.New(), body, payloadtest.Request())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got := reference{}
		for i := range b.Samples {
			s := &b.Samples[i]
			for id, v := range s.Values.All() {
				values++
				key := keyOf(s.Entity, string(s.Instance.UID), s.Instance.Start, id)
				got[key] = append(got[key], v)
			}
		}
		o, err := decode(body)
		if err != nil {
			t.Fatal(err)
		}
		want := reference{}
		want.summary(o)
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b float64) bool { return a < b })); diff != "" {
			t.Errorf("%s (-reference +got):\n%s", path, diff)
		}
	}
	payloadtest.Each(t, "summary.json", 300, check)
	payloadtest.Each(t, "summary_cpu_memory.json", 0, check)
	if values < 25_000 {
		t.Errorf("got %d values in all captures, want more than 25000", values)
	}
}

func TestExactValues(t *testing.T) {
	b, err := payloadtest.Repeatable(t, summary.New(), summary.New(), payloadtest.Capture(t, "08-kubelet-restart/00/summary.json"), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) int64 {
		t, _ := time.Parse(time.RFC3339, text)
		return t.UnixNano()
	}
	s := payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "web"})[0]
	payloadtest.Want(t, s, metric.CPUUsage, 383757177783)
	payloadtest.Want(t, s, metric.MemoryAvailable, 43524096)
	payloadtest.Want(t, s, metric.EphemeralStorageUsage, 40960+4096)
	payloadtest.Want(t, s, metric.FilesystemUsage, 40960)
	payloadtest.WantAbsent(t, s, metric.CPUUsageRate)
	want := metric.Instance{UID: "80cd749e-fe99-4226-bfc9-fe1dcb4e4831", Start: at("2026-11-21T02:10:36Z"), Origin: metric.StartReported, Processes: -1}
	if s.Instance != want {
		t.Errorf("instance is %+v, want %+v", s.Instance, want)
	}
	if got, want := s.Times[metric.CPU], at("2026-11-21T04:22:29Z"); got != want {
		t.Errorf("CPU time is %d, want %d", got, want)
	}
	if got, want := s.Times[metric.Filesystem], at("2026-11-21T04:22:32Z"); got != want {
		t.Errorf("file system time is %d, want %d", got, want)
	}
	node := payloadtest.Find(b, metric.Entity{Kind: metric.Node})[0]
	payloadtest.Want(t, node, metric.ProcessLimit, 32768)
	payloadtest.Want(t, node, metric.ProcessCount, 307)
	payloadtest.Want(t, node, metric.FilesystemLimit, 270553174016)
	payloadtest.Want(t, node, metric.NetworkRx, 853190156)
	pod := payloadtest.Find(b, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web"})[0]
	payloadtest.Want(t, pod, metric.EphemeralStorageUsage, 49152)
	payloadtest.Want(t, pod, metric.NetworkTx, 1242)
	if pod.Received != 1<<metric.Process {
		t.Errorf("groups with our time are %b, want only the processes, which have none", pod.Received)
	}
	volume := payloadtest.Find(b, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web", Part: "volume:kube-api-access-686rs"})[0]
	payloadtest.Want(t, volume, metric.FilesystemUsage, 12288)
}

// parse parses a summary of node1 with the given pods.
func parse(t *testing.T, pods string) *metric.Batch {
	t.Helper()
	body := `{"node":{"nodeName":"node1"},"pods":[` + pods + `]}`
	b, err := payloadtest.Repeatable(t, summary.New(), summary.New(), []byte(body), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOrderOfMembersDoesNotMatter(t *testing.T) {
	b := parse(t, `{"network":{"interfaces":[{"rxBytes":3,"name":"eth1"}],"rxBytes":4,"time":"2026-11-21T04:22:35Z"},
		"containers":[{"cpu":{"usageCoreNanoSeconds":7,"time":"2026-11-21T04:22:35.5+01:00"},"startTime":"2026-11-21T02:00:00Z","name":"c"}],
		"startTime":"2026-11-21T01:00:00Z", "unknown":{"a":[1,{"b":null}],"c":true},
		"podRef":{"uid":"u","namespace":"n","name":"p"}}`)
	pod := metric.Entity{Kind: metric.Pod, Namespace: "n", Pod: "p"}
	eth1 := pod
	eth1.Part = "interface:eth1"
	s := payloadtest.Find(b, eth1)[0]
	payloadtest.Want(t, s, metric.NetworkRx, 3)
	at := time.Date(2026, 11, 21, 4, 22, 35, 0, time.UTC).UnixNano()
	if s.Times[metric.Network] != at || s.Received != 0 || s.Instance.UID != "u" || s.Instance.Start == 0 {
		t.Errorf("got %v, want the network's time and the pod's instance", payloadtest.Lines(b))
	}
	payloadtest.Want(t, payloadtest.Find(b, pod)[0], metric.NetworkRx, 4)
	c := payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "n", Pod: "p", Name: "c"})[0]
	if got, want := c.Times[metric.CPU], at-int64(time.Hour)+5e8; got != want {
		t.Errorf("CPU time is %d, want %d", got, want)
	}
	if got, want := c.Instance.Start, time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC).UnixNano(); got != want {
		t.Errorf("start is %d, want %d", got, want)
	}
}

func container(t *testing.T, members string) *metric.Sample {
	t.Helper()
	b := parse(t, `{"podRef":{"name":"p","namespace":"n","uid":"u"},"containers":[{"name":"c",`+members+`}]}`)
	return payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "n", Pod: "p", Name: "c"})[0]
}

func TestRateCountsOnlyWithoutCounter(t *testing.T) {
	s := container(t, `"cpu":{"time":"2026-11-21T04:22:35Z","usageNanoCores":5}`)
	payloadtest.Want(t, s, metric.CPUUsageRate, 5)
	if got, want := s.Rates[metric.CPU], (metric.Window{End: s.Times[metric.CPU]}); got != want || want.End == 0 {
		t.Errorf("window is %+v, want %+v", got, want)
	}
	s = container(t, `"cpu":{"time":"2026-11-21T04:22:35Z","usageNanoCores":5,"usageCoreNanoSeconds":0}`)
	payloadtest.WantAbsent(t, s, metric.CPUUsageRate)
	payloadtest.Want(t, s, metric.CPUUsage, 0)
}

func TestAbsentIsNotZero(t *testing.T) {
	s := container(t, `"startTime":null,"cpu":{"time":null,"usageCoreNanoSeconds":null},"memory":null,"rootfs":{"usedBytes":1},"logs":null`)
	payloadtest.WantAbsent(t, s, metric.CPUUsage, metric.MemoryWorkingSet, metric.EphemeralStorageUsage)
	if s.Times[metric.CPU] != 0 || s.Instance.Start != 0 {
		t.Errorf("got CPU time %d and start %d, want none", s.Times[metric.CPU], s.Instance.Start)
	}
	if got, want := s.Times[metric.Filesystem], payloadtest.Received; got != want || s.Received != 1<<metric.Filesystem {
		t.Errorf("got file system time %d, marked %b, want ours", got, s.Received)
	}
}

func TestPressureIsMicroseconds(t *testing.T) {
	s := container(t, `"cpu":{"psi":{"some":{"total":1234,"avg10":1.5},"full":{"total":7}}},"io":{"time":"2026-11-21T04:22:35Z","psi":{"some":{"total":2}}}`)
	payloadtest.Want(t, s, metric.CPUPressureSome, 1234000)
	payloadtest.Want(t, s, metric.CPUPressureFull, 7000)
	payloadtest.Want(t, s, metric.IOPressureSome, 2000)
	payloadtest.WantAbsent(t, s, metric.IOPressureFull)
}

func TestAccelerators(t *testing.T) {
	b := parse(t, `{"podRef":{"name":"p","namespace":"n","uid":"u"},"containers":[{"name":"c","accelerators":[{"make":"x","id":"GPU-1","memoryTotal":8,"memoryUsed":2,"dutyCycle":25}]}]}`)
	s := payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "n", Pod: "p", Name: "c", Part: "accelerator:GPU-1"})[0]
	payloadtest.Want(t, s, metric.AcceleratorMemoryTotal, 8)
	payloadtest.Want(t, s, metric.AcceleratorDutyCycle, 0.25)
}

func TestEscapesAndDuplicates(t *testing.T) {
	pod := `{"podRef":{"name":"\u00e9\"","namespace":"n","uid":"u"},"containers":[{"name":"c"},{"name":"c"}]}`
	b := parse(t, pod+","+pod)
	if got := len(payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "n", Pod: `é"`, Name: "c"})); got != 4 {
		t.Errorf("got %d samples of the container, want 4:\n%s", got, strings.Join(payloadtest.Lines(b), "\n"))
	}
}

func TestWrongNode(t *testing.T) {
	req := payloadtest.Request()
	req.Expect = "node2"
	b, err := payloadtest.Repeatable(t, summary.New(), summary.New(), payloadtest.Capture(t, "01-steady/00/summary.json"), req)
	var read *metric.ReadError
	if !errors.As(err, &read) || read.Reason != metric.NodeWrongIdentity || len(b.Samples) != 0 {
		t.Errorf("got %d samples and %v, want none and NodeWrongIdentity", len(b.Samples), err)
	}
	req.Expect = ""
	if b, err = payloadtest.Repeatable(t, summary.New(), summary.New(), payloadtest.Capture(t, "01-steady/00/summary.json"), req); err != nil || len(b.Samples) == 0 {
		t.Errorf("with a guessed name: got %d samples and %v", len(b.Samples), err)
	}
}

func TestBadPayloads(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		b, err := payloadtest.Repeatable(t, summary.New(), summary.New(), []byte(body), payloadtest.Request())
		var read *metric.ReadError
		if !errors.As(err, &read) || read.Reason != metric.NodeBadPayload {
			t.Errorf("%q: got error %v, want NodeBadPayload", body, err)
			return
		}
		if got := read.Err.Error(); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
		if len(b.Samples) != 0 {
			t.Errorf("%q: got %d samples, want none", body, len(b.Samples))
		}
	}
	f("", `line 1 (offset 0): empty: end of payload`)
	f("<html>\n", `line 1 (offset 0): not an object: "<html>"`)
	f("{}", `line 1 (offset 0): neither node nor pods: "{}"`)
	f(`{"kind":"Status"}`, `line 1 (offset 0): neither node nor pods: "{\"kind\":\"Status\"}"`)
	f(`{"node":{}} x`, `line 1 (offset 12): more than one value: "x"`)
	f(`{"node":{"cpu":{"usageCoreNanoSeconds":"1"}}}`, `line 1 (offset 39): not a number: "\"1\"}}}"`)
	f("{\"node\":{},\n\"pods\":[{]}", `line 2 (offset 21): not a string: "]}"`)
	f(`{"node":{"startTime":"yesterday"}}`, `line 1 (offset 21): not a time: "\"yesterday\"}}"`)
	f(`{"node":{"nodeName":"node1"`, `line 1 (offset 27): neither a comma nor a closing bracket: end of payload`)
	f(`{"node":{"nodeName":"node1`, `line 1 (offset 20): a string without a closing quote: "\"node1"`)
	f(`{"node":{"x":`+strings.Repeat("[", 100), `line 1 (offset 75): nested too deeply: "`+strings.Repeat("[", 38)+`"`)
}

func FuzzParse(f *testing.F) {
	payloadtest.Seeds(f, "summary.json")
	f.Add([]byte(`{"node":{"nodeName":"node1","cpu":{"usageNanoCores":5}},"pods":[{"podRef":{"name":"p","namespace":"n","uid":"u"},"containers":[{"name":"c","cpu":{"time":"2026-11-21T04:22:35Z","usageCoreNanoSeconds":5}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req := payloadtest.Request()
		req.MaxSamples = 50
		b, err := payloadtest.Repeatable(t, summary.New(), summary.New(), body, req)
		var read *metric.ReadError
		if err != nil && !errors.As(err, &read) {
			t.Fatalf("an error without a reason: %v", err)
		}
		if err != nil && len(b.Samples) > 0 {
			t.Fatalf("%d samples from a payload that is not believed", len(b.Samples))
		}
	})
}

// FuzzReference checks that each value is one that encoding/json finds for the entity.
func FuzzReference(f *testing.F) {
	payloadtest.Seeds(f, "summary.json")
	f.Add([]byte(`{"node":{"startTime":"2026-11-21T02:10:36Z","memory":{"usageBytes":5,"rssBytes":1e2,"psi":{"some":{"total":7}}},"fs":{"usedBytes":null}},"pods":[{"podRef":{"name":"p","namespace":"n","uid":"u"},"containers":[{"name":"<c","logs":{"usedBytes":1},"rootfs":{"usedBytes":2}}]}]}`))
	known := map[metric.ID]bool{}
	for _, paths := range []map[string]metric.ID{usagePaths, fsPaths, interfacePaths} {
		for _, id := range paths {
			known[id] = true
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := decode(body)
		if err != nil {
			return
		}
		// Of two members of one name, encoding/json keeps the last. Written again, the payload has one.
		if body, err = json.Marshal(o); err != nil {
			t.Fatal(err)
		}
		b := new(metric.Batch)
		if summary.New().Parse(body, payloadtest.Request(), b) != nil {
			return
		}
		r := reference{}
		r.summary(o)
		for i := range b.Samples {
			s := &b.Samples[i]
			for id, got := range s.Values.All() {
				if !known[id] {
					continue
				}
				want := r[keyOf(s.Entity, string(s.Instance.UID), s.Instance.Start, id)]
				// A value beyond 2^53 is rounded by both parsers, at different places.
				if !slices.ContainsFunc(want, func(w float64) bool { return math.Abs(got-w) <= w/(1<<50) }) {
					t.Errorf("%v %v: got %v, encoding/json says %v, in %s", s.Entity, id, got, want, body)
				}
			}
		}
	})
}
