package oomkills

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/record"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/metric"
)

// TestEventsAreBounded has the kernel kill a thousand times a minute in one namespace, and once in another.
func TestEventsAreBounded(t *testing.T) {
	recorder := record.NewFakeRecorder(10000)
	w := boundedWriter(recorder)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	of := func(namespace string, i int) *cluster.Pod {
		return &cluster.Pod{PodRef: metric.PodRef{Namespace: metric.Namespace(namespace), Name: metric.PodName(fmt.Sprint("web-", i))}}
	}
	for i := range 10000 { // ten minutes
		k := endlog.Kill{Container: "app\x1b[31m", Scope: endlog.InContainer, Limit: endlog.InContainer, Processes: 1, At: noon.Add(time.Duration(i) * 60 * time.Millisecond)}
		w.write(&k, of("flood", i))
		if i == 5000 {
			w.write(&k, of("quiet", 0))
		}
	}
	// The burst, one in each of the ten minutes, and that of the quiet namespace.
	if got, want := len(recorder.Events), namespaceBurst+9+1; got != want {
		t.Errorf("%d Events are written, want %d", got, want)
	}
	if got, want := testutil.ToFloat64(w.dropped), 10001.0-float64(len(recorder.Events)); got != want {
		t.Errorf("%v are counted as dropped, want %v", got, want)
	}
	for i := range 1000 {
		w.write(&endlog.Kill{At: noon.Add(10 * time.Minute)}, of(fmt.Sprint("n", i), 0))
	}
	if got := len(w.namespaces); got > maxNamespaces {
		t.Errorf("%d namespaces have a bound of their own, want at most %d", got, maxNamespaces)
	}
	if got, most := len(recorder.Events), namespaceBurst+9+1+totalBurst; got > most {
		t.Errorf("%d Events of a thousand namespaces are written, want at most %d", got, most)
	}
	(*eventWriter)(nil).write(&endlog.Kill{}, of("n", 1)) // without the flag
}

// TestEventMessages checks what Events say.
func TestEventMessages(t *testing.T) {
	for want, k := range map[string]endlog.Kill{
		"The kernel killed 1 process of container app for memory: the container reached its limit":                                    {Container: "app", Scope: endlog.InContainer, Limit: endlog.InContainer, Processes: 1},
		"The kernel killed 3 processes of the pod for memory: the pod reached its limit":                                              {Scope: endlog.InPod, Limit: endlog.InPod, Processes: 3},
		"The kernel killed 1 process of the pod for memory: slice /kubepods reached its limit":                                        {Scope: endlog.InSlice, Limit: endlog.InSlice, Slice: "/kubepods", Processes: 1},
		"The kernel killed 1 process of the pod for memory: the node has no memory left":                                              {Scope: endlog.InNode, Limit: endlog.InNode, Logged: true, Processes: 1},
		"The kernel killed 1 process of the pod for memory: probably the node has no memory left":                                     {Scope: endlog.InNode, Limit: endlog.InNode, Processes: 1},
		"The kernel killed 1 process of the pod for memory: probably the pod reached its limit":                                       {Scope: endlog.InPod, Limit: endlog.InPod, Doubt: endlog.Earlier, Processes: 1},
		"The kernel killed 1 process of container app for memory: a cgroup in the container reached its limit. The container goes on": {Container: "app", Scope: endlog.Child, Limit: endlog.InContainer, Inner: true, Processes: 1},
		"The kernel killed 1 process of the pod for memory: the NUMA nodes that it may use have no memory left":                       {Scope: endlog.InNode, Limit: endlog.InNode, NUMA: true, Logged: true, Processes: 1},
		"The kernel killed 2 processes of container app for memory. The container goes on":                                            {Container: "app", Scope: endlog.Child, Processes: 2},
	} {
		if got := eventMessage(&k); got != want {
			t.Errorf("%+v: got %q, want %q", k, got, want)
		}
	}
}

// TestEveryLimitHasAMessage checks that the message of each limit names it.
func TestEveryLimitHasAMessage(t *testing.T) {
	none := eventMessage(&endlog.Kill{Processes: 1})
	for _, limit := range endlog.Limits {
		if got := eventMessage(&endlog.Kill{Scope: limit, Limit: limit, Logged: true, Processes: 1}); len(got) <= len(none) {
			t.Errorf("limit %s: got %q, want more than %q", limit, got, none)
		}
	}
}
