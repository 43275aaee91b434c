package kubeletapi_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/cadvisor/lib/container"
	"github.com/google/cadvisor/lib/model"

	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/differences"
)

// cgroups is a read of cgroups that a test has made.
type cgroups map[string]*model.ContainerInfo

func (cgroups) Metrics() container.MetricSet {
	return container.MetricSet{
		container.CpuUsageMetrics: {}, container.MemoryUsageMetrics: {}, container.DiskIOMetrics: {}, container.DiskUsageMetrics: {},
		container.NetworkUsageMetrics: {}, container.ProcessMetrics: {}, container.OOMMetrics: {}, container.PressureMetrics: {},
	}
}
func (cgroups) GetMachineInfo() (*model.MachineInfo, error) {
	return &model.MachineInfo{MachineID: "m", SystemUUID: "s", BootID: "b"}, nil
}
func (cgroups) GetVersionInfo() (*model.VersionInfo, error) { return &model.VersionInfo{}, nil }
func (c cgroups) GetRequestedContainersInfo(string, model.RequestOptions) (map[string]*model.ContainerInfo, error) {
	return c, nil
}

// cgroupsOf returns the cgroups of a round with their CPU and memory, and one device, file system
// and interface each.
func cgroupsOf(b *metric.Batch) cgroups {
	all := cgroups{}
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Entity.Part != "" || s.Instance.Path == "" {
			continue
		}
		cpu, _ := s.Values.Get(metric.CPUUsage)
		memory, _ := s.Values.Get(metric.MemoryWorkingSet)
		disk := func(of string) []model.PerDiskStats {
			return []model.PerDiskStats{{Device: "/dev/vda", Stats: map[string]uint64{of: 1}}}
		}
		c := &model.ContainerInfo{
			Spec: model.ContainerSpec{HasCpu: true, Cpu: model.CpuSpec{Quota: 1, Period: 2}, HasMemory: true},
			Stats: []*model.ContainerStats{{
				Timestamp:  time.Unix(0, s.Times[metric.CPU]),
				Cpu:        &model.CpuStats{Usage: model.CpuUsage{Total: uint64(cpu)}},
				Memory:     &model.MemoryStats{WorkingSet: uint64(memory)},
				DiskIo:     &model.DiskIoStats{IoServiceBytes: disk("Read"), IoServiced: disk("Read")},
				Filesystem: []model.FsStats{{Device: "/dev/vdb"}},
				Network:    &model.NetworkStats{Interfaces: []model.InterfaceStats{{Name: "eth0"}}},
				Processes:  &model.ProcessStats{Ulimits: []model.UlimitSpec{{Name: "max_open_files"}}},
			}},
		}
		c.Name = string(s.Instance.Path)
		if s.Instance.ID != "" {
			c.Aliases = []string{string(s.Instance.ID)}
		}
		all[c.Name] = c
	}
	return all
}

// Families have the names, types and labels of a kubelet, apart from the differences that the docs
// list. Each difference is a real one.
func TestCAdvisorFamilies(t *testing.T) {
	known := map[string]differences.Difference{}
	for _, d := range differences.CAdvisor {
		known[d.Name] = d
	}
	for path, body := range captures(t, "01-steady/00/cadvisor.prom") {
		theirs := shape(t, body)
		ours := shape(t, serve(t, handler(t, ofCAdvisor.parse(t, body), kubeletapi.Options{}), kubeletapi.CAdvisorPath))
		for _, name := range slices.Sorted(maps.Keys(theirs)) {
			listed := known[name].Kind == differences.NotServed
			switch got, ok := ours[name]; {
			case ok && listed:
				t.Errorf("%s: %s is served, and listed as not served", path, name)
			case !ok && !listed:
				t.Errorf("%s: %s is neither served nor listed", path, name)
			case ok && got != theirs[name]:
				t.Errorf("%s: %s is %s, a kubelet's is %s", path, name, got, theirs[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(ours)) {
			_, ok := theirs[name]
			// The kernel of the captures has no pressure of cgroups and no block I/O of them.
			if listed := known[name].Kind == differences.Since137; ok == listed && !strings.HasPrefix(name, "container_pressure_") &&
				!strings.HasSuffix(name, "s_bytes_total") && !strings.HasPrefix(name, "container_fs_io_cost_") && name != "container_blkio_device_usage_total" {
				t.Errorf("%s: %s: a kubelet 1.36 has it: %t; listed as new: %t", path, name, ok, listed)
			}
		}
		for name, d := range known {
			if d.Kind == differences.NotServed && theirs[name] == "" {
				t.Errorf("%s is listed, but no kubelet has it", name)
			}
		}
	}
}

// A cgroup that identity rejected is not served. One that began after the round is, with the names
// of the runtime.
func TestCAdvisorNames(t *testing.T) {
	w := newFixture()
	_, app := w.pod("web", 10)
	old, _ := w.pod("old", 5)
	old.Reject(metric.OldPod)
	all := cgroupsOf(&w.Batch)
	sandbox := *all[string(app.Instance.Path)]
	sandbox.Name, sandbox.Aliases = string(app.Instance.Path)+"-sandbox", []string{"5a4db0"}
	sandbox.Spec.Image = "pause"
	sandbox.Spec.Labels = map[string]string{"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "shop"}
	all[sandbox.Name] = &sandbox
	h := handler(t, &w.Batch, kubeletapi.Options{CAdvisor: func(context.Context) (kubeletapi.CAdvisor, error) { return all, nil }})
	var got []string
	for _, line := range lines(t, h, kubeletapi.CAdvisorPath, "container_cpu_usage_seconds_total") {
		line, _, _ = strings.Cut(line, "}")
		got = append(got, strings.ReplaceAll(line, uid, "UID"))
	}
	want(t, got,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/burstable/podUIDweb",image="",name="",namespace="shop",pod="web"`,
		`container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/burstable/podUIDweb/c0ffee-sandbox",image="pause",name="5a4db0",namespace="shop",pod="web"`,
		`container_cpu_usage_seconds_total{container="app",cpu="total",id="/kubepods/burstable/podUIDold/c0ffee",image="",name="c0ffee",namespace="shop",pod="old"`,
		`container_cpu_usage_seconds_total{container="app",cpu="total",id="/kubepods/burstable/podUIDweb/c0ffee",image="",name="c0ffee",namespace="shop",pod="web"`,
	)
}

// However many requests there are, the cgroups are read for at most a fifth of the time.
func TestCAdvisorIsReadAtMostAFifthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture()
		all := cgroupsOf(&w.Batch)
		reads, fails := 0, false
		h := handler(t, &w.Batch, kubeletapi.Options{CAdvisor: func(context.Context) (kubeletapi.CAdvisor, error) {
			if fails {
				return nil, errors.New("closed")
			}
			reads++
			time.Sleep(100 * time.Millisecond) // the clock of the test
			return all, nil
		}})
		began := time.Now()
		for time.Since(began) < 10*time.Second {
			serve(t, h, kubeletapi.CAdvisorPath)
			time.Sleep(20 * time.Millisecond)
		}
		if reads < 18 || reads > 20 {
			t.Errorf("%d reads in 10 s, want 18 to 20", reads)
		}
		time.Sleep(time.Second)
		fails = true
		want(t, lines(t, h, kubeletapi.CAdvisorPath, "container_scrape_error"), "container_scrape_error 1")
	})
}

// setCAdvisor gives o the cgroups of a round, unless it has others.
func setCAdvisor(o *kubeletapi.Options, b *metric.Batch) {
	if o.CAdvisor == nil {
		all := cgroupsOf(b)
		o.CAdvisor = func(context.Context) (kubeletapi.CAdvisor, error) { return all, nil }
	}
}
