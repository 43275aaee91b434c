package cadvisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/test/payloadtest"
)

// plain has the families with values that need no conversion except from seconds.
var plain = map[string]metric.ID{
	"container_cpu_usage_seconds_total":         metric.CPUUsage,
	"container_cpu_user_seconds_total":          metric.CPUUser,
	"container_cpu_system_seconds_total":        metric.CPUSystem,
	"container_cpu_cfs_throttled_seconds_total": metric.CPUThrottled,
	"container_cpu_cfs_periods_total":           metric.CPUPeriods,
	"container_memory_usage_bytes":              metric.MemoryUsage,
	"container_memory_working_set_bytes":        metric.MemoryWorkingSet,
	"container_memory_rss":                      metric.MemoryRSS,
	"container_memory_cache":                    metric.MemoryCache,
	"container_memory_swap":                     metric.MemorySwap,
	"container_oom_events_total":                metric.MemoryOOMEvents,
	"container_processes":                       metric.ProcessCount,
	"container_network_receive_bytes_total":     metric.NetworkRx,
	"container_network_transmit_errors_total":   metric.NetworkTxErrors,
	"container_fs_inodes_free":                  metric.FilesystemInodesFree,
	"container_fs_limit_bytes":                  metric.FilesystemLimit,
}

// reference parses body with Prometheus' own parser. It returns the plain values by cgroup path,
// part and metric, and the start time of each cgroup.
func reference(t *testing.T, body []byte) (values map[string]string, starts map[string]int64) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	values, starts = map[string]string{}, map[string]int64{}
	for name, f := range families {
		id, ok := plain[name]
		if !ok && name != "container_start_time_seconds" {
			continue
		}
		for _, m := range f.Metric {
			l := map[string]string{}
			for _, p := range m.Label {
				l[p.GetName()] = p.GetValue()
			}
			v := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if name == "container_start_time_seconds" {
				starts[l["id"]] = int64(max(v, 0)) * 1e9 // a zero Go time is before 1970
				continue
			}
			part := ""
			if i := l["interface"]; i != "" {
				part = "interface:" + i
			} else if d := l["device"]; d != "" {
				part = "device:" + d
			}
			if sandbox := l["pod"] != "" && l["container"] == "" && l["name"] != ""; sandbox && l["interface"] == "" {
				continue
			}
			kind := metric.System
			switch {
			case l["container"] != "":
				kind = metric.Container
			case l["pod"] != "":
				kind = metric.Pod
			case l["id"] == "/":
				kind = metric.Node
			}
			if !id.Describe().Kinds.Has(kind) {
				continue
			}
			if strings.Contains(name, "_seconds_") {
				v = math.Round(v * 1e9)
			}
			values[fmt.Sprint(l["id"], " ", part, " ", id)] = fmt.Sprintf("%.0f at %d", v, m.GetTimestampMs()*1e6)
		}
	}
	return values, starts
}

func TestCapturesAgreeWithReferenceParser(t *testing.T) {
	wanted := map[metric.ID]bool{}
	for _, id := range plain {
		wanted[id] = true
	}
	p := cadvisor.New()
	checked, round := 0, 0
	payloadtest.Each(t, "cadvisor.prom", 308, func(path string, body []byte) {
		if round++; round%5 != 1 {
			// The reference is slow, so the other captures are only parsed.
			if err := p.Parse(body, payloadtest.Request(), new(metric.Batch)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return
		}
		b, err := payloadtest.Repeatable(t, p, cadvisor.New(), body, payloadtest.Request())
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		values, starts := reference(t, body)
		got := map[string]string{}
		for i := range b.Samples {
			s := &b.Samples[i]
			want, origin := starts[string(s.Instance.Path)], metric.StartUnknown
			switch {
			case want != 0 && s.Instance.ID != "":
				origin = metric.StartReported
			case want != 0:
				origin = metric.StartCgroup
			}
			if s.Instance.Start != want || s.Instance.Origin != origin {
				t.Errorf("%s: %v starts at %d of origin %v, want %d of origin %v", path, s.Entity, s.Instance.Start, s.Instance.Origin, want, origin)
			}
			for id, v := range s.Values.All() {
				// The network of a pod or node repeats the values of eth0.
				if wanted[id] && (s.Entity.Part != "" || id.Describe().Group != metric.Network) {
					got[fmt.Sprint(s.Instance.Path, " ", s.Entity.Part, " ", id)] = fmt.Sprintf("%.0f at %d", v, s.Times[id.Describe().Group])
				}
			}
		}
		checked += len(got)
		if diff := cmp.Diff(values, got); diff != "" {
			t.Errorf("%s (-reference +got):\n%s", path, diff)
		}
		if b.Cores != 2 {
			t.Errorf("%s: got %v cores, want 2", path, b.Cores)
		}
	})
	if checked < 20_000 {
		t.Errorf("checked %d values, want more than 20000", checked)
	}
}

func TestExactValues(t *testing.T) {
	b, err := payloadtest.Repeatable(t, cadvisor.New(), cadvisor.New(), payloadtest.Capture(t, "08-kubelet-restart/00/cadvisor.prom"), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	const cgroup = "/kubepods/pod80cd749e-fe99-4226-bfc9-fe1dcb4e4831"
	const uid = "80cd749e-fe99-4226-bfc9-fe1dcb4e4831"

	web := payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "shop", Pod: "web", Name: "web"})
	if len(web) != 1 {
		t.Fatalf("got %d samples of the container, want 1", len(web))
	}
	const id = "2e7965ef0c97854dafb59f99490af5ed893aa3daa5a4b453fe23d17a3fa10c28"
	want := metric.Instance{UID: uid, ID: id, Path: cgroup + "/" + id, Start: 1795227036e9, Origin: metric.StartReported, Processes: 1}
	if web[0].Instance != want {
		t.Errorf("instance is %+v, want %+v", web[0].Instance, want)
	}
	payloadtest.Want(t, web[0], metric.CPUUsage, 383757177783)
	payloadtest.Want(t, web[0], metric.CPULimit, 1e8) // a quota of 10000 in a period of 100000
	payloadtest.Want(t, web[0], metric.MemoryPageFaults, 6656)
	payloadtest.Want(t, web[0], metric.MemoryMajorPageFaults, 0)
	payloadtest.Want(t, web[0], metric.MemoryLimit, 67108864)
	payloadtest.WantAbsent(t, web[0], metric.NetworkRx)
	if got, want := web[0].Received, uint16(1<<metric.Spec); got != want {
		t.Errorf("groups with our time are %b, want %b: only the limits have none", got, want)
	}

	pod := payloadtest.Find(b, metric.Entity{Kind: metric.Pod, Namespace: "shop", Pod: "web"})
	if len(pod) != 2 {
		t.Fatalf("got %d samples of the pod, want its cgroup's and its sandbox's", len(pod))
	}
	if got, want := pod[0].Instance, (metric.Instance{UID: uid, Path: cgroup, Start: 1795227034e9, Origin: metric.StartCgroup, Processes: 2}); got != want {
		t.Errorf("the pod's cgroup is %+v, want %+v", got, want)
	}
	payloadtest.Want(t, pod[0], metric.CPUUsage, 384054901958)
	payloadtest.WantAbsent(t, pod[0], metric.NetworkRx)
	const sandbox = "598b9b3243f632e738b5dccb9faf3164822031054d5b8e215268193004b04667"
	if got, want := pod[1].Instance, (metric.Instance{UID: uid, ID: sandbox, Path: cgroup + "/" + sandbox, Start: 1795227035e9, Origin: metric.StartReported, Processes: 1}); got != want {
		t.Errorf("the sandbox is %+v, want %+v", got, want)
	}
	payloadtest.Want(t, pod[1], metric.NetworkRx, 78186)
	payloadtest.Want(t, pod[1], metric.NetworkTx, 1242)
	payloadtest.WantAbsent(t, pod[1], metric.CPUUsage, metric.MemoryWorkingSet)

	node := payloadtest.Find(b, metric.Entity{Kind: metric.Node})
	payloadtest.Want(t, node[0], metric.CPUUsage, 10873277663533)
	payloadtest.Want(t, node[0], metric.CPUNodeCapacity, 2e9)
	payloadtest.Want(t, node[0], metric.MemoryNodeCapacity, 25325273088)
	payloadtest.WantAbsent(t, node[0], metric.MemoryLimit, metric.CPULimit)
	payloadtest.Want(t, payloadtest.Find(b, metric.Entity{Kind: metric.Node, Part: "interface:cni0"})[0], metric.NetworkRx, 73636)
	if len(payloadtest.Find(b, metric.Entity{Kind: metric.System, Name: "/kubepods/burstable"})) != 1 {
		t.Error("want one sample of the system container /kubepods/burstable")
	}
}

func TestOneContainerUnderTwoPathsIsTwoSamples(t *testing.T) {
	b, err := payloadtest.Repeatable(t, cadvisor.New(), cadvisor.New(), payloadtest.Capture(t, "03f-one-container-two-paths/05/cadvisor.prom"), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	paths := map[metric.ContainerID]map[metric.CgroupPath]int32{}
	for i := range b.Samples {
		if s := &b.Samples[i]; s.Entity.Kind == metric.Container && s.Entity.Part == "" {
			if paths[s.Instance.ID] == nil {
				paths[s.Instance.ID] = map[metric.CgroupPath]int32{}
			}
			paths[s.Instance.ID][s.Instance.Path] = s.Instance.Processes
		}
	}
	twice := 0
	for _, p := range paths {
		if len(p) == 2 {
			twice++
		}
	}
	if twice != 1 {
		t.Errorf("got %d containers under two paths, want 1: %v", twice, paths)
	}
}

// parse parses the lines as a payload of /metrics/cadvisor.
func parse(t *testing.T, lines ...string) *metric.Batch {
	t.Helper()
	b, err := payloadtest.Repeatable(t, cadvisor.New(), cadvisor.New(), []byte(strings.Join(lines, "\n")+"\n"), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSpellingsOfPaths(t *testing.T) {
	f := func(id, uid, containerID string) {
		t.Helper()
		b := parse(t, `container_memory_rss{container="c",id="`+id+`",image="i",name="n",namespace="ns",pod="p"} 1`)
		in := b.Samples[0].Instance
		if in.UID != metric.PodUID(uid) || in.ID != metric.ContainerID(containerID) || string(in.Path) != id {
			t.Errorf("%s: got UID %q, ID %q, path %q; want %q, %q", id, in.UID, in.ID, in.Path, uid, containerID)
		}
	}
	const uid = "80cd749e-fe99-4226-bfc9-fe1dcb4e4831"
	f("/kubepods/besteffort/pod"+uid+"/abc", uid, "abc")
	f("/kubepods/pod4e0055337d07e43ec2b2a6916d310071/abc", "4e0055337d07e43ec2b2a6916d310071", "abc")
	f("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod80cd749e_fe99_4226_bfc9_fe1dcb4e4831.slice/cri-containerd-abc.scope", uid, "abc")
	f("/kubepods.slice/kubepods-pod80cd749e_fe99_4226_bfc9_fe1dcb4e4831.slice/crio-abc.scope", uid, "abc")
	f("/kubelet/kubepods/pod"+uid+"/system.slice:cri-containerd:abc", uid, "abc")
	f("/docker/abc", "", "abc")
}

const podLabels = `id="/kubepods/pod80cd749e-fe99-4226-bfc9-fe1dcb4e4831/sb",image="pause",name="sb",namespace="ns",pod="p"`

func TestNetworkOfPodWithoutEth0(t *testing.T) {
	rx := func(iface, v string) string {
		return `container_network_receive_bytes_total{container="",interface="` + iface + `",` + podLabels + `} ` + v + ` 1795234949671`
	}
	pod := metric.Entity{Kind: metric.Pod, Namespace: "ns", Pod: "p"}
	b := parse(t, rx("ens3", "7"), rx("lo", "8"))
	payloadtest.Want(t, payloadtest.Find(b, pod)[0], metric.NetworkRx, 7)
	b = parse(t, rx("ens3", "7"), rx("ens4", "8"))
	if got := payloadtest.Find(b, pod); len(got) != 0 {
		t.Errorf("of two interfaces neither is the pod's own, got %v", payloadtest.Lines(b))
	}
	b = parse(t, rx("ens3", "7"), rx("eth0", "9"))
	payloadtest.Want(t, payloadtest.Find(b, pod)[0], metric.NetworkRx, 9)
}

func TestSumsAndScales(t *testing.T) {
	const l = `id="/kubepods/pod80cd749e-fe99-4226-bfc9-fe1dcb4e4831/c1",image="i",name="c1",namespace="ns",pod="p"`
	b := parse(t,
		`container_cpu_usage_seconds_total{container="c",cpu="cpu00",`+l+`} 1.000000001`,
		`container_cpu_usage_seconds_total{container="c",cpu="cpu01",`+l+`} 2`,
		`container_cpu_load_average_10s{container="c",`+l+`} 1500`,
		`container_fs_reads_bytes_total{container="c",device="/dev/a",`+l+`} 10`,
		`container_fs_reads_bytes_total{container="c",device="/dev/b",`+l+`} 20`,
		`container_pressure_cpu_waiting_seconds_total{container="c",`+l+`} 0.000002`,
		`container_memory_events_max_total{container="c",`+l+`} 6`,
		`container_memory_failcnt{container="c",`+l+`} 0`,
		`container_threads_max{container="c",`+l+`} 0`,
		`container_spec_memory_limit_bytes{container="c",`+l+`} 0`,
		`container_accelerator_duty_cycle{acc_id="g",container="c",make="x",model="y",`+l+`} 25`,
	)
	c := metric.Entity{Kind: metric.Container, Namespace: "ns", Pod: "p", Name: "c"}
	s := payloadtest.Find(b, c)[0]
	payloadtest.Want(t, s, metric.CPUUsage, 3000000001)
	payloadtest.Want(t, s, metric.CPULoad, 1.5)
	payloadtest.Want(t, s, metric.DiskReadBytes, 30)
	payloadtest.Want(t, s, metric.CPUPressureSome, 2000)
	payloadtest.Want(t, s, metric.MemoryFailures, 6)
	payloadtest.WantAbsent(t, s, metric.ProcessLimit, metric.MemoryLimit)
	c.Part = "device:/dev/b"
	payloadtest.Want(t, payloadtest.Find(b, c)[0], metric.DiskReadBytes, 20)
	c.Part = "accelerator:g"
	payloadtest.Want(t, payloadtest.Find(b, c)[0], metric.AcceleratorDutyCycle, 0.25)
}

func TestProcessesBelowCount(t *testing.T) {
	b := parse(t,
		`container_processes{container="",id="/",image="",name="",namespace="",pod=""} 3`,
		`container_processes{container="",id="/a",image="",name="",namespace="",pod=""} 0`,
		`container_processes{container="",id="/a/b/c",image="",name="",namespace="",pod=""} 4`,
		`container_memory_rss{container="",id="/d",image="",name="",namespace="",pod=""} 1`,
	)
	for path, want := range map[metric.CgroupPath]int32{"/": 7, "/a": 4, "/a/b/c": 4, "/d": -1} {
		for i := range b.Samples {
			if in := b.Samples[i].Instance; in.Path == path && in.Processes != want {
				t.Errorf("%s: got %d processes, want %d", path, in.Processes, want)
			}
		}
	}
}

func TestTwoEqualLinesAreTwoSamples(t *testing.T) {
	const l = `{container="c",id="/x",image="i",name="n",namespace="ns",pod="p"}`
	b := parse(t, "container_memory_rss"+l+" 1", "container_memory_rss"+l+" 2", "container_memory_cache"+l+" 3")
	s := payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "ns", Pod: "p", Name: "c"})
	if len(s) != 2 {
		t.Fatalf("got %d samples, want 2", len(s))
	}
	payloadtest.Want(t, s[0], metric.MemoryRSS, 1)
	payloadtest.Want(t, s[0], metric.MemoryCache, 3)
	payloadtest.Want(t, s[1], metric.MemoryRSS, 2)
}

// A kubelet that takes its statistics from the runtime may answer with numbers of the machine alone.
// That is an answer without pods, not a broken one, so pods that are missing are NotReported.
func TestOnlyTheMachineIsNoError(t *testing.T) {
	b := parse(t, `machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="s"} 2`, "machine_scrape_error 0")
	if len(b.Samples) != 1 || b.Samples[0].Entity.Kind != metric.Node || b.Cores != 2 {
		t.Errorf("got %v and %v cores, want a sample of the node and 2 cores", b.Samples, b.Cores)
	}
}

func TestErrors(t *testing.T) {
	f := func(reason metric.Reason, want string, samples int, lines ...string) {
		t.Helper()
		body := strings.Join(lines, "\n") + "\n"
		if want == "not complete" {
			body = strings.TrimSuffix(body, "\n")
		}
		b, err := payloadtest.Repeatable(t, cadvisor.New(), cadvisor.New(), []byte(body), payloadtest.Request())
		var read *metric.ReadError
		if !errors.As(err, &read) || read.Reason != reason || !strings.Contains(read.Err.Error(), want) {
			t.Errorf("%q: got error %v, want %v about %q", body, err, reason, want)
		}
		if len(b.Samples) != samples {
			t.Errorf("%q: got %d samples, want %d", body, len(b.Samples), samples)
		}
	}
	const line = `container_memory_rss{id="/"} 1`
	f(metric.NodeScrapeError, "container_scrape_error", 1, line, "container_scrape_error 1")
	f(metric.NodeScrapeError, "machine_scrape_error", 1, line, "machine_scrape_error 1")
	f(metric.NodeBadPayload, "no family", 0, "")
	f(metric.NodeBadPayload, "no family", 0, "up 1")
	f(metric.NodeBadPayload, "not complete", 0, line, line)
	f(metric.NodeBadPayload, "no metric name", 0, line, "<html>")
	f(metric.NodeBadPayload, "not a list of labels", 0, line, `container_memory_rss{id="/"x} 1`)
	f(metric.NodeBadPayload, "are in two places", 0, line, `container_memory_cache{id="/"} 1`, line)
}

func FuzzParse(f *testing.F) {
	payloadtest.Seeds(f, "cadvisor.prom")
	f.Add([]byte(`container_memory_rss{container="c",id="/x",name="n",namespace="ns",pod="p"} 1` + "\nmachine_cpu_cores 2\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		req := payloadtest.Request()
		req.MaxSamples = 50
		b, err := payloadtest.Repeatable(t, cadvisor.New(), cadvisor.New(), body, req)
		var read *metric.ReadError
		if err != nil && !errors.As(err, &read) {
			t.Fatalf("an error without a reason: %v", err)
		}
		if read != nil && read.Reason == metric.NodeBadPayload && len(b.Samples) > 0 {
			t.Fatalf("%d samples from a payload that does not parse", len(b.Samples))
		}
	})
}

// FuzzReference checks that each plain value of a cgroup is one that Prometheus' own parser finds
// for its path, in payloads that it accepts.
func FuzzReference(f *testing.F) {
	payloadtest.Seeds(f, "cadvisor.prom")
	f.Add([]byte("container_memory_rss{container=\"c\",id=\"/x\",name=\"n\",namespace=\"ns\",pod=\"p\"} 1 1795234949671\n" +
		"container_fs_limit_bytes{device=\"/dev/a\\\\b\",id=\"/x\"} 2.5e+3\n# EOF\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		b := new(metric.Batch)
		if cadvisor.New().Parse(body, payloadtest.Request(), b) != nil {
			return
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
		if err != nil {
			return
		}
		type place struct {
			path, part string
			id         metric.ID
		}
		want := map[place][]float64{}
		for name, id := range plain {
			f := families[name]
			for _, m := range f.GetMetric() {
				l := map[string]string{}
				for _, p := range m.Label {
					l[p.GetName()] = p.GetValue()
				}
				in := place{l["id"], "", id}
				switch {
				case l["interface"] != "":
					in.part = "interface:" + l["interface"]
				case l["device"] != "":
					in.part = "device:" + l["device"]
				}
				v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
				if strings.Contains(name, "_seconds_") {
					v = math.Round(v * 1e9)
				}
				want[in] = append(want[in], v)
			}
		}
		for i := range b.Samples {
			s := &b.Samples[i]
			for id, got := range s.Values.All() {
				in := place{string(s.Instance.Path), s.Entity.Part, id}
				// CPU usage is a sum. The network of a pod or node repeats that of an interface.
				if !isPlain(id) || id == metric.CPUUsage || s.Entity.Part == "" && id.Describe().Group == metric.Network {
					continue
				}
				// A value beyond 2^53 is rounded by both parsers, at different places.
				if !slices.ContainsFunc(want[in], func(w float64) bool { return math.Abs(got-w) <= w/(1<<50) }) {
					t.Errorf("%v: got %v, Prometheus' parser says %v", in, got, want[in])
				}
			}
		}
	})
}

func isPlain(id metric.ID) bool {
	for _, p := range plain {
		if p == id {
			return true
		}
	}
	return false
}
