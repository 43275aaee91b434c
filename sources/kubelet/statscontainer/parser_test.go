package statscontainer_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/payload/payloadtest"
	"github.com/weir-metrics/weir/sources/kubelet/statscontainer"
)

func capture(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile("../../../testdata/captures/00-stats-container/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

const neo = "cf372e95fb3ed22b8613576164867f273eca157c0d3c4112af196993b0b8125f"

func TestOneContainerUnderTwoPathsIsTwoSamples(t *testing.T) {
	nanos := func(text string) int64 {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixNano()
	}
	slice := metric.CgroupPath("/system.slice/docker.service/docker/" + neo)
	docker := metric.CgroupPath("/docker/" + neo)
	starts := map[metric.CgroupPath]int64{
		slice:  nanos("2017-05-04T15:30:22.688799748Z"),
		docker: nanos("2017-05-04T15:30:43.173457599Z"),
	}
	f := func(name string, order [2]metric.CgroupPath, usage, node float64, minute string) {
		t.Helper()
		b, err := payloadtest.Repeatable(t, statscontainer.New(), statscontainer.New(), capture(t, name), payloadtest.Request())
		if err != nil {
			t.Fatal(err)
		}
		s := payloadtest.Find(b, metric.Entity{Kind: metric.Container, Namespace: "backend", Pod: "neo-staging-web-v201-dqxj5", Name: "neo-web"})
		if len(s) != 2 || len(b.Samples) != 3 {
			t.Fatalf("%s: got %d samples, %d of the container; want 3 and 2", name, len(b.Samples), len(s))
		}
		for i, s := range s {
			want := metric.Instance{ID: neo, Path: order[i], Start: starts[order[i]], Origin: metric.StartReported, Processes: -1}
			if s.Instance != want {
				t.Errorf("%s: sample %d is of %+v, want %+v", name, i, s.Instance, want)
			}
			payloadtest.Want(t, s, metric.CPUUsage, usage)
			payloadtest.Want(t, s, metric.MemoryWorkingSet, 188743680)
			payloadtest.Want(t, s, metric.MemoryUsage, 209715200)
		}
		n := payloadtest.Find(b, metric.Entity{Kind: metric.Node})[0]
		payloadtest.Want(t, n, metric.CPUUsage, node)
		if got, want := n.Times[metric.CPU], nanos(minute); got != want {
			t.Errorf("%s: the node was read at %d, want %d", name, got, want)
		}
	}
	f("round1.json", [2]metric.CgroupPath{slice, docker}, 18705600126, 5400000000000, "2017-05-04T15:31:00Z")
	f("round2.json", [2]metric.CgroupPath{docker, slice}, 33705600126, 5460000000000, "2017-05-04T15:32:00Z")
}

func TestEverythingElse(t *testing.T) {
	const labels = `"labels":{"io.kubernetes.container.name":"%","io.kubernetes.pod.name":"p","io.kubernetes.pod.namespace":"n","io.kubernetes.pod.uid":"u"}`
	b, err := payloadtest.Repeatable(t, statscontainer.New(), statscontainer.New(), []byte(`{
		"/a/c1":{"id":"c1","name":"/a/c1","spec":{`+replace(labels, "c")+`,"has_cpu":true,"has_network":false,"cpu":{"quota":50000,"period":100000},"memory":{"limit":9223372036854771712}},
		  "stats":[{"timestamp":"2017-05-04T15:31:00Z","cpu":{"usage":{"total":1}}},
		           {"timestamp":"2017-05-04T15:32:00Z","cpu":{"usage":{"total":2,"user":1},"load_average":1500},
		            "memory":{"working_set":0,"hierarchical_data":{"pgfault":4}},"network":{"rx_bytes":9},
		            "filesystem":[{"device":"/dev/a","usage":5,"capacity":6}],
		            "diskio":{"io_service_bytes":[{"major":8,"minor":1,"stats":{"Read":7,"Write":8}}]}}]},
		"/a/sb":{"id":"sb","name":"/a/sb","spec":{`+replace(labels, "POD")+`,"has_network":true},
		  "stats":[{"timestamp":"2017-05-04T15:32:00Z","cpu":{"usage":{"total":2}},"network":{"name":"eth0","rx_bytes":9,"interfaces":[{"name":"eth0","rx_bytes":9}]}}]},
		"/system.slice":{"name":"/system.slice","stats":[{"timestamp":"2017-05-04T15:32:00Z","memory":{"usage":3}}]},
		"/empty":{"name":"/empty"}
	}`), payloadtest.Request())
	if err != nil {
		t.Fatal(err)
	}
	c := metric.Entity{Kind: metric.Container, Namespace: "n", Pod: "p", Name: "c"}
	s := payloadtest.Find(b, c)[0]
	payloadtest.Want(t, s, metric.CPUUsage, 2)
	payloadtest.Want(t, s, metric.CPUUser, 1)
	payloadtest.Want(t, s, metric.CPULoad, 1.5)
	payloadtest.Want(t, s, metric.CPULimit, 5e8)
	payloadtest.Want(t, s, metric.MemoryWorkingSet, 0)
	payloadtest.Want(t, s, metric.MemoryPageFaults, 4)
	payloadtest.Want(t, s, metric.FilesystemUsage, 5)
	payloadtest.Want(t, s, metric.DiskReadBytes, 7)
	payloadtest.WantAbsent(t, s, metric.CPUSystem, metric.MemoryUsage, metric.MemoryLimit, metric.NetworkRx)
	if s.Instance.UID != "u" {
		t.Errorf("got UID %q, want u", s.Instance.UID)
	}
	c.Part = "device:8:1"
	payloadtest.Want(t, payloadtest.Find(b, c)[0], metric.DiskWriteBytes, 8)
	pod := metric.Entity{Kind: metric.Pod, Namespace: "n", Pod: "p"}
	p := payloadtest.Find(b, pod)[0]
	payloadtest.Want(t, p, metric.NetworkRx, 9)
	payloadtest.WantAbsent(t, p, metric.CPUUsage)
	pod.Part = "interface:eth0"
	payloadtest.Want(t, payloadtest.Find(b, pod)[0], metric.NetworkRx, 9)
	payloadtest.Want(t, payloadtest.Find(b, metric.Entity{Kind: metric.System, Name: "/system.slice"})[0], metric.MemoryUsage, 3)
}

func replace(s, name string) string {
	for i := range s {
		if s[i] == '%' {
			return s[:i] + name + s[i+1:]
		}
	}
	return s
}

func TestBadPayloads(t *testing.T) {
	for _, body := range []string{"", "null", "[]", "{}", "<html>", `{"/":`, `{"/":{"name":"/"}`, `{"/":{"stats":7}}`, `{"a":{}}`} {
		b, err := payloadtest.Repeatable(t, statscontainer.New(), statscontainer.New(), []byte(body), payloadtest.Request())
		var read *metric.ReadError
		if !errors.As(err, &read) || read.Reason != metric.NodeBadPayload || len(b.Samples) != 0 {
			t.Errorf("%q: got %d samples and %v, want none and NodeBadPayload", body, len(b.Samples), err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(capture(f, "round1.json"))
	f.Add(capture(f, "round2.json"))
	f.Fuzz(func(t *testing.T, body []byte) {
		req := payloadtest.Request()
		req.MaxSamples = 50
		b, err := payloadtest.Repeatable(t, statscontainer.New(), statscontainer.New(), body, req)
		if err != nil && len(b.Samples) > 0 {
			t.Fatalf("%d samples from a payload that does not parse", len(b.Samples))
		}
	})
}
