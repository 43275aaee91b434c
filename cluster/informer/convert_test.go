package informer

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/capture"
	"github.com/weir-metrics/weir/test/cmptest"
)

// flat is the readable part of the facts of a container.
type flat struct {
	Name    string
	Role    cluster.Role
	State   cluster.ContainerState
	ID      metric.ContainerID
	LastID  metric.ContainerID
	Started string
	Ended   string
	Why     string
	Spec    map[string]float64
}

func flatten(c *cluster.Container) flat {
	return flat{c.Name, c.Role, c.State, c.ID, c.LastID(), moment(c.StartedAt), moment(c.EndedAt()), c.StateReason(), values(c.Spec.Values())}
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.TimeOnly)
}

func values(v *metric.Values) map[string]float64 {
	if v.Len() == 0 {
		return nil
	}
	m := map[string]float64{}
	for id, x := range v.All() {
		m[id.String()] = x
	}
	return m
}

func podFromJSON(t *testing.T, s string) *cluster.Pod {
	t.Helper()
	var p v1.Pod
	if err := json.Unmarshal([]byte(s), &p); err != nil {
		t.Fatal(err)
	}
	return podFacts(&p, time.Unix(100, 0), newPool())
}

func TestContainers(t *testing.T) {
	f := podFromJSON(t, `{
	"metadata": {"namespace": "shop", "name": "web", "uid": "u1", "labels": {"pod-template-hash": "5dff"},
		"ownerReferences": [{"kind": "Job", "name": "other"}, {"kind": "ReplicaSet", "name": "web-5dff", "controller": true}]},
	"spec": {
		"nodeName": "n1", "hostNetwork": true,
		"resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "64Mi"}},
		"initContainers": [
			{"name": "prepare"},
			{"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "10m"}}}],
		"containers": [
			{"name": "app", "image": "example.com/app:1", "resources": {
				"requests": {"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "1M", "nvidia.com/gpu": "2"},
				"limits": {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "2"}}},
			{"name": "crash"}, {"name": "new"}],
		"ephemeralContainers": [{"name": "debug"}]},
	"status": {
		"phase": "Running", "qosClass": "Burstable", "startTime": "2026-01-01T10:00:00Z",
		"initContainerStatuses": [
			{"name": "prepare", "containerID": "containerd://i1", "state": {"terminated": {
				"containerID": "containerd://i1", "reason": "Completed",
				"startedAt": "2026-01-01T10:00:01Z", "finishedAt": "2026-01-01T10:00:02Z"}}},
			{"name": "proxy", "containerID": "containerd://p1", "state": {"running": {"startedAt": "2026-01-01T10:00:03Z"}}}],
		"containerStatuses": [
			{"name": "app", "containerID": "cri-o://a2", "restartCount": 1,
				"state": {"running": {"startedAt": "2026-01-01T10:05:00Z"}},
				"lastState": {"terminated": {"containerID": "cri-o://a1", "finishedAt": "2026-01-01T10:04:59Z"}}},
			{"name": "crash", "containerID": "",
				"state": {"waiting": {"reason": "CrashLoopBackOff"}},
				"lastState": {"terminated": {"containerID": "containerd://c1", "finishedAt": "2026-01-01T10:01:00Z"}}}],
		"ephemeralContainerStatuses": [
			{"name": "debug", "containerID": "containerd://d1", "state": {"running": {"startedAt": "2026-01-01T10:09:00Z"}}}]}}`)

	var got []flat
	for i := range f.Containers {
		got = append(got, flatten(&f.Containers[i]))
	}
	want := []flat{
		{Name: "prepare", Role: cluster.Init, State: cluster.StateTerminated, ID: "i1", Started: "10:00:01", Ended: "10:00:02", Why: "Completed"},
		{Name: "proxy", Role: cluster.Sidecar, State: cluster.StateRunning, ID: "p1", Started: "10:00:03", Spec: map[string]float64{"cpu/request": 1e7}},
		{Name: "app", State: cluster.StateRunning, ID: "a2", LastID: "a1", Started: "10:05:00", Ended: "10:04:59", Spec: map[string]float64{
			"cpu/request": 1.5e9, "memory/request": 1 << 30, "ephemeral_storage/request": 1e6, "accelerator/request": 2,
			"cpu/limit": 2e9, "memory/limit": 2 << 30}},
		{Name: "crash", State: cluster.StateWaiting, ID: "c1", LastID: "c1", Ended: "10:01:00", Why: "CrashLoopBackOff"},
		{Name: "new", State: cluster.StateUnknown},
		{Name: "debug", Role: cluster.Ephemeral, State: cluster.StateRunning, ID: "d1", Started: "10:09:00"},
	}
	cmptest.Equal(t, "containers", want, got)
	if want := (cluster.Owner{Kind: "ReplicaSet", Name: "web-5dff"}); *f.Owner != want || f.Workload() != (cluster.Owner{Kind: "Deployment", Name: "web"}) {
		t.Errorf("owner %v, workload %v", *f.Owner, f.Workload())
	}
	if got := f.Containers[2].Image; got != "example.com/app:1" {
		t.Errorf("app: image %q", got)
	}
	if f.Containers[2].Restarts != 1 {
		t.Errorf("app: %d restarts, want 1", f.Containers[2].Restarts)
	}
	cmptest.Equal(t, "pod-level resources", map[string]float64{"cpu/request": 5e7, "memory/limit": 64 << 20}, values(f.Spec.Values()))
	if !f.HostNetwork || f.QoS != "Burstable" || f.Node != "n1" || f.Phase != cluster.Running || moment(f.Started) != "10:00:00" ||
		!f.KnownAt.Equal(time.Unix(100, 0)) || f.Mirror || !f.Deleted.IsZero() {
		t.Errorf("pod: %+v", f)
	}
}

func TestReadiness(t *testing.T) {
	f := func(conditions string, want cluster.Readiness, since string) {
		t.Helper()
		p := podFromJSON(t, `{"status": {"conditions": [`+conditions+`]}}`)
		if p.Ready != want || moment(p.ReadySince) != since {
			t.Errorf("%s: got %v since %q, want %v since %q", conditions, p.Ready, moment(p.ReadySince), want, since)
		}
	}
	f(``, cluster.ReadyAbsent, "")
	f(`{"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T10:00:00Z"}`, cluster.ReadyAbsent, "")
	f(`{"type": "PodScheduled", "status": "True"},
	   {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T10:00:07Z"}`, cluster.ReadyTrue, "10:00:07")
	f(`{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T10:00:01Z"}`, cluster.ReadyFalse, "10:00:01")
	f(`{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T10:00:02Z"}`, cluster.ReadyUnknown, "10:00:02")
	f(`{"type": "Ready", "status": "True", "lastTransitionTime": null}`, cluster.ReadyTrue, "")
}

func TestPodLevel(t *testing.T) {
	f := func(resources string, want bool, spec map[string]float64) {
		t.Helper()
		p := podFromJSON(t, `{"spec": {"resources": `+resources+`}}`)
		if p.PodLevel != want {
			t.Errorf("%s: got pod-level %v, want %v", resources, p.PodLevel, want)
		}
		cmptest.Equal(t, resources, spec, values(p.Spec.Values()))
	}
	f(`null`, false, nil)
	f(`{"requests": {"cpu": "1"}}`, true, map[string]float64{"cpu/request": 1e9})
	f(`{"requests": {"memory": "1Ki"}}`, true, map[string]float64{"memory/request": 1024})
	f(`{"requests": {"hugepages-2Mi": "4Mi"}}`, true, nil)
	// Limits alone do not count, and neither do resources that a pod-level request cannot contain.
	f(`{"limits": {"cpu": "1"}}`, false, map[string]float64{"cpu/limit": 1e9})
	f(`{"requests": {"ephemeral-storage": "1"}}`, false, map[string]float64{"ephemeral_storage/request": 1})
}

// Requests are exact enough for an autoscaler, which counts each in thousandths, rounded up.
func TestOddRequests(t *testing.T) {
	f := func(cpu, memory string, wantCPU, wantMemory float64) {
		t.Helper()
		p := podFromJSON(t, `{"spec": {"overhead": {"cpu": "`+cpu+`", "memory": "`+memory+`"},
			"containers": [{"name": "app", "resources": {"requests": {"cpu": "`+cpu+`", "memory": "`+memory+`"}}}]}}`)
		want := map[string]float64{"cpu/request": wantCPU, "memory/request": wantMemory}
		cmptest.Equal(t, fmt.Sprintf("%s, %s", cpu, memory), want, values(p.Containers[0].Spec.Values()))
		cmptest.Equal(t, fmt.Sprintf("overhead of %s, %s", cpu, memory), want, values(p.Overhead.Values()))
	}
	f("0", "0", 0, 0)
	f("1n", "100m", 1, 0.1)
	f("1500u", "128974848000m", 1.5e6, 128974848)
	f("0.0000000001", "1u", 1, 0.001) // rounded as the API server does, and then as an autoscaler does
	f("100k", "1.0005", 1e14, 1.001)
	f("1", "4398046511103.999", 1e9, 4398046511104)
	f("1", "4398046511103.5", 1e9, 4398046511104)
	f("1", "4398046511102.5", 1e9, 4398046511102.5)
	f("1", "8Pi", 1e9, 1<<53)
}

func TestNode(t *testing.T) {
	var n v1.Node
	must(t, json.Unmarshal([]byte(`{
	"metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"note": "x"}},
	"spec": {"unschedulable": true},
	"status": {
		"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n1"}],
		"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}, "nodeInfo": {"swap": {"capacity": 1073741824}},
		"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"},
			{"type": "DrainInProgress", "status": "True"}, {"type": "Drained", "status": "False"}],
		"capacity": {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"},
		"allocatable": {"cpu": "3920m", "memory": "15Gi"}}}`), &n))
	f := nodeFacts(&n)
	wantAddresses := []cluster.NodeAddress{{Type: "InternalIP", Address: "10.0.0.1"}, {Type: "Hostname", Address: "n1"}}
	cmptest.Equal(t, "addresses", wantAddresses, f.Addresses)
	want := map[string]float64{
		"cpu/node_capacity": 4e9, "memory/node_capacity": 16 << 30, "ephemeral_storage/node_capacity": 100 << 30,
		"cpu/node_allocatable": 3.92e9, "memory/node_allocatable": 15 << 30,
	}
	cmptest.Equal(t, "values", want, values(&f.Spec))
	cmptest.Equal(t, "lifecycle", []cluster.NodeLifecycle{"DrainInProgress"}, f.Lifecycle)
	if !f.Ready || !f.Unschedulable || !f.Swap || f.KubeletPort != 10250 || f.Labels["zone"] != "a" || len(f.Annotations) != 0 || f.Cores() != 4 {
		t.Errorf("node: %+v", f)
	}
}

func TestAccelerators(t *testing.T) {
	for name, want := range map[string]bool{
		"nvidia.com/gpu": true, "nvidia.com/mig-1g.5gb": true, "amd.com/gpu": true, "google.com/tpu": true,
		"gpu.intel.com/i915": true, "gpu.intel.com/memory.max": false, "aws.amazon.com/neuroncore": true,
		"habana.ai/gaudi": true, "huawei.com/npu": true,
		"cpu": false, "hugepages-2Mi": false, "example.com/fpga": false, "x.kubernetes.io/gpu": false,
	} {
		if got := isAccelerator(name); got != want {
			t.Errorf("isAccelerator(%q) = %v, want %v", name, got, want)
		}
	}
}

// Every pod list of the captures can be converted, and some of their facts are those in the
// captures' README.
func TestCaptures(t *testing.T) {
	files := capture.Glob(t, "*/*/pods.json")
	if len(files) < 100 {
		t.Fatalf("%d pod lists in the captures, want hundreds", len(files))
	}
	for _, file := range files {
		facts, list := captured(t, file)
		for i := range list.Items {
			p := &list.Items[i]
			f := facts.Pod(metric.PodRef{Namespace: metric.Namespace(p.Namespace), Name: metric.PodName(p.Name)})
			if f == nil {
				t.Fatalf("%s: %s/%s is lost", file, p.Namespace, p.Name)
			}
			if want := len(p.Spec.InitContainers) + len(p.Spec.Containers) + len(p.Spec.EphemeralContainers); len(f.Containers) != want {
				t.Errorf("%s: %v has %d containers, want %d", file, f.PodRef, len(f.Containers), want)
			}
			for j := range f.Containers {
				c := &f.Containers[j]
				if c.State == cluster.StateRunning && (len(c.ID) != 64 || c.StartedAt.IsZero()) {
					t.Errorf("%s: %v %s runs with ID %q since %v", file, f.PodRef, c.Name, c.ID, c.StartedAt)
				}
			}
		}
	}
}

func TestSteadyCapture(t *testing.T) {
	facts, _ := captured(t, "01-steady/00/pods.json")
	if !facts.Synced || len(facts.PodsOn("node1")) != 16 {
		t.Errorf("synced %v with %d pods on node1, want true, 16", facts.Synced, len(facts.PodsOn("node1")))
	}
	ref := func(ns metric.Namespace, name metric.PodName) metric.PodRef {
		return metric.PodRef{Namespace: ns, Name: name}
	}
	static := facts.Pod(ref("kube-system", "static-agent-node1"))
	if hash := static.ReportedUID(); !static.Mirror || hash != "4e0055337d07e43ec2b2a6916d310071" || !static.HasUID(hash) || !static.HasUID(static.UID) {
		t.Errorf("static pod: mirror %v, hash %q", static.Mirror, hash)
	}
	if !facts.Pod(ref("kube-system", "hostnet")).HostNetwork {
		t.Error("hostnet is not in the host's network")
	}
	if got := facts.Pod(ref("shop", "done")).Phase; got != cluster.Succeeded {
		t.Errorf("done is %v, want Succeeded", got)
	}
	if c := facts.Pod(ref("shop", "with-sidecar")).Container("sidecar"); c.Role != cluster.Sidecar || !c.Required() {
		t.Errorf("sidecar: role %v, required %v", c.Role, c.Required())
	}
	if c := facts.Pod(ref("shop", "with-init")).Container("migrate"); c.Role != cluster.Init || c.State != cluster.StateTerminated || c.Required() {
		t.Errorf("migrate: role %v, state %v, required %v", c.Role, c.State, c.Required())
	}
	want := map[string]float64{"cpu/request": 5e7, "cpu/limit": 1e8, "memory/request": 64 << 20, "memory/limit": 64 << 20}
	cmptest.Equal(t, "pod-level resources", want, values(facts.Pod(ref("data", "podlevel")).Spec.Values()))
}

// captured returns the facts of a captured pod list, and the list.
func captured(t *testing.T, file string) (*cluster.Facts, *v1.PodList) {
	t.Helper()
	data := capture.Read(t, file)
	var list v1.PodList
	must(t, json.Unmarshal(data, &list))
	facts, err := FactsFromPods(data, time.Now())
	must(t, err)
	return facts, &list
}

func TestFactsFromPodsRefusesGarbage(t *testing.T) {
	if _, err := FactsFromPods([]byte("{"), time.Time{}); err == nil {
		t.Error("half a list was taken")
	}
}

func TestPoolShares(t *testing.T) {
	p := newPool()
	one := p.labels(map[string]string{"app": "web", "tier": "front"})
	two := p.labels(map[string]string{"tier": "front", "app": "web"})
	two["app"] = "changed" // only this test changes a set: it shows that the memory is shared
	if one["app"] != "changed" {
		t.Error("equal labels are kept twice")
	}
	if other := p.labels(map[string]string{"app": "web"}); len(other) != 1 {
		t.Errorf("other labels: %v", other)
	}
	if p.labels(nil) != nil {
		t.Error("no labels became some")
	}
	for i := range 2 * poolSize {
		p.text(time.Duration(i).String())
	}
	if len(p.texts) > poolSize {
		t.Errorf("%d texts kept, bound %d", len(p.texts), poolSize)
	}
}
