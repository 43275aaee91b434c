package clustermetrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
	"github.com/weir-metrics/weir/test/cmptest"
)

// known returns facts about the pods of small: web-0 belongs to a Deployment, db-0 to a Job.
func known() *cluster.Facts {
	var request, capacity metric.Values
	request.Set(metric.CPURequest, 250e6)
	request.Set(metric.MemoryRequest, 1<<20)
	capacity.Set(metric.CPUNodeCapacity, 4e9)
	capacity.Set(metric.MemoryNodeAllocatable, 1<<30)
	web := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: "shop", Name: "web-0"}, UID: "u1", Node: "n1", Phase: cluster.Running,
		Labels: map[string]string{"pod-template-hash": "5dff"}, Owner: &cluster.Owner{Kind: "ReplicaSet", Name: "web-5dff"},
		Containers: []cluster.Container{
			{Name: "prepare", Role: cluster.Init, Spec: cluster.NewRequirements(&request)},
			{Name: "app", Image: `example.com/"app":1`, Spec: cluster.NewRequirements(&request)},
		},
	}
	db := &cluster.Pod{PodRef: metric.PodRef{Namespace: "bank", Name: "db-0"}, UID: "u2", Phase: cluster.Pending, Owner: &cluster.Owner{Kind: "Job", Name: "db"}}
	return new(cluster.Facts).With(cluster.FactsChange{
		At: time.Unix(100, 0), Synced: true,
		Nodes: []*cluster.Node{{Name: "n1", Spec: capacity}}, Pods: []*cluster.Pod{web, db},
	})
}

func TestKubernetesNames(t *testing.T) {
	view := small()
	app := metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web-0", Name: "app"}
	view.add(app, map[metric.ID]float64{metric.CPUUsage: 5e9, metric.MemoryRSS: 77, metric.CPUUser: 1})
	eth0 := metric.Entity{Kind: metric.Pod, Node: "n1", Namespace: "shop", Pod: "web-0", Part: "interface:eth0"}
	view.add(eth0, map[metric.ID]float64{metric.NetworkRx: 600, metric.NetworkRxErrors: 1})
	view.add(metric.Entity{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web-0", Name: "app", Part: "device:/dev/sda"},
		map[metric.ID]float64{metric.DiskReadBytes: 512})
	h := New(func() MetricsReader { return view }, Options{Facts: known})
	all := []string{
		`container_cpu_usage_seconds_total{cpu="total",node="n1",namespace="shop",pod="web-0",container="app",image="example.com/\"app\":1"} 5 1767323045123`,
		`container_fs_reads_bytes_total{node="n1",namespace="shop",pod="web-0",container="app",device="/dev/sda",image="example.com/\"app\":1"} 512 1767323045123`,
		`container_memory_rss{node="n1",namespace="shop",pod="web-0",container="app",image="example.com/\"app\":1"} 77 1767323045123`,
		`container_network_receive_bytes_total{node="n1",namespace="shop",pod="web-0",interface="eth0"} 600 1767323045123`,
		`kube_job_owner{namespace="bank",job_name="db",owner_kind="",owner_name="",owner_is_controller=""} 1`,
		`kube_node_info{node="n1"} 1`,
		`kube_node_status_allocatable{node="n1",resource="memory",unit="byte"} 1073741824`,
		`kube_node_status_capacity{node="n1",resource="cpu",unit="core"} 4`,
		`kube_pod_container_resource_requests{node="n1",namespace="shop",pod="web-0",container="app",resource="cpu",unit="core"} 0.25`,
		`kube_pod_container_resource_requests{node="n1",namespace="shop",pod="web-0",container="app",resource="memory",unit="byte"} 1048576`,
		`kube_pod_info{node="",namespace="bank",pod="db-0",created_by_kind="Job",created_by_name="db"} 1`,
		`kube_pod_info{node="n1",namespace="shop",pod="web-0",created_by_kind="ReplicaSet",created_by_name="web-5dff"} 1`,
		`kube_pod_owner{node="",namespace="bank",pod="db-0",owner_kind="Job",owner_name="db",owner_is_controller="true"} 1`,
		`kube_pod_owner{node="n1",namespace="shop",pod="web-0",owner_kind="ReplicaSet",owner_name="web-5dff",owner_is_controller="true"} 1`,
		`kube_pod_status_phase{node="",namespace="bank",pod="db-0",phase="Pending"} 1`,
		`kube_pod_status_phase{node="n1",namespace="shop",pod="web-0",phase="Running"} 1`,
		`kube_replicaset_owner{namespace="shop",replicaset="web-5dff",owner_kind="Deployment",owner_name="web",owner_is_controller="true"} 1`,
		`kubelet_running_pods{node="n1"} 1`,
	}
	matching := func(contains string) (list []string) {
		for _, s := range all {
			if strings.Contains(s, contains) {
				list = append(list, s)
			}
		}
		return list
	}
	withoutTimes := slices.Clone(all)
	for i := range withoutTimes {
		withoutTimes[i] = strings.TrimSuffix(withoutTimes[i], " 1767323045123")
	}
	for query, want := range map[string][]string{
		"?names=kubernetes":                          all,
		"?timestamps=false&names=kubernetes":         withoutTimes,
		"?names=kubernetes&profile=default":          all,
		"?names=kubernetes&metric=container_memory*": matching("container_memory_rss"),
		"?names=kubernetes&metric=memory/rss":        matching("container_memory_rss"),
		"?names=kubernetes&namespace=bank":           matching("bank"),
		"?names=kubernetes&level=node":               append(matching("kube_node_"), matching("kubelet_")...),
	} {
		cmptest.Equal(t, fmt.Sprintf("%q", query), want, seriesIn(t, h, query))
	}
	if got, want := seriesIn(t, h, "?metric=weir_pod_info"), []string{
		`weir_pod_info{node="",namespace="bank",pod="db-0",workload="db",workload_kind="Job"} 1`,
		`weir_pod_info{node="n1",namespace="shop",pod="web-0",workload="web",workload_kind="Deployment"} 1`,
	}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// What the sink's options leave out is not shown under other names, either.
	narrow := New(func() MetricsReader { return view }, Options{Facts: known, Filter: series.Filter{Metrics: []string{"memory/*"}}})
	cmptest.Equal(t, "option metric=memory/*", matching("container_memory"), seriesIn(t, narrow, "?names=kubernetes"))
	if got := get(t, h, "?names=kubernetes&limit=6").Body.String(); !strings.Contains(got, "weir_exposition_series 6\n") || !strings.Contains(got, "weir_exposition_truncated 1\n") {
		t.Errorf("limit 6: got %s", got)
	}
}

// seriesIn returns the series of an answer, without those about the answer, sorted.
func seriesIn(t *testing.T, h *Handler, query string) (list []string) {
	t.Helper()
	for line := range strings.Lines(get(t, h, query).Body.String()) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "weir_exposition") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	slices.Sort(list)
	return list
}
