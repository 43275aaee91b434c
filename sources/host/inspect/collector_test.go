package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-metrics/weir/test/transcript"
)

func TestCollector(t *testing.T) {
	f := newFixture(t, "v1")
	f.add(`
		/kubepods/burstable/pod$A/#1 pids=101
		/kubepods/burstable/pod$A/#2 pids=102,103
		/kubepods/besteffort/pod$A age=30m
		/kubepods/besteffort/pod$B/#3 pids=104,105 age=2h
		/kubepods/besteffort/pod$B age=2h
		/kubepods/besteffort/pod$C age=30s
		process 101 pause S age=1h
		process 102 app D age=1h`)
	now := transcript.Epoch
	asked := 0
	c := NewCollector(f.inspector("/"), func() *Pods {
		asked++
		return &Pods{From: "the API server", At: transcript.Epoch, List: parsePods(t, "shop/web uid=$A qos=Burstable\n app id=#4 last=#2")}
	})
	c.now = func() time.Time { return now }
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	const want = `
# HELP weir_leftover_cgroup_oldest_seconds Age of the oldest pod's cgroup on this node that should no longer be there; absent if there is none.
# TYPE weir_leftover_cgroup_oldest_seconds gauge
weir_leftover_cgroup_oldest_seconds 7200
# HELP weir_leftover_cgroup_processes Processes in pods' cgroups on this node that should no longer be there.
# TYPE weir_leftover_cgroup_processes gauge
weir_leftover_cgroup_processes 2
# HELP weir_leftover_cgroups Cgroups of pods and containers on this node that should no longer be there, by level (pod, container) and judgement.
# TYPE weir_leftover_cgroups gauge
weir_leftover_cgroups{judgement="duplicate",level="container"} 0
weir_leftover_cgroups{judgement="duplicate",level="pod"} 1
weir_leftover_cgroups{judgement="old-container",level="container"} 1
weir_leftover_cgroups{judgement="no-pod",level="container"} 1
weir_leftover_cgroups{judgement="no-pod",level="pod"} 1
# HELP weir_pod_cgroup_problems Problems of the last inspection of pods' cgroups: what could not be read, or a list of pods that seems to be of another node.
# TYPE weir_pod_cgroup_problems gauge
weir_pod_cgroup_problems 0
# HELP weir_pod_cgroups Cgroups of pods on this node, by judgement.
# TYPE weir_pod_cgroups gauge
weir_pod_cgroups{judgement="duplicate"} 1
weir_pod_cgroups{judgement="empty"} 0
weir_pod_cgroups{judgement="live"} 1
weir_pod_cgroups{judgement="no-pod"} 1
weir_pod_cgroups{judgement="unknown"} 1
weir_pod_cgroups{judgement="wrong-qos"} 0
`
	for range 2 {
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	if asked != 1 {
		t.Errorf("pods were asked for %d times within a minute, want once", asked)
	}
	now = now.Add(61 * time.Second)
	if _, err := registry.Gather(); err != nil || asked != 2 {
		t.Errorf("after 61 s pods had been asked for %d times (%v), want twice", asked, err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}
