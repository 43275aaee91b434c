package usage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// TestResize lists what a resize in place has not applied, of a pod and of its container.
func TestResize(t *testing.T) {
	v, facts := village()
	web := *facts.Pod(metric.PodRef{Namespace: "shop", Name: "web"})
	web.Resize = &cluster.Resize{State: "Deferred", Message: "no room", Applied: []cluster.Applied{
		{Container: "app", ID: metric.CPURequest, Spec: 200e6, Value: 100e6}, {Container: "proxy", ID: metric.MemoryLimit, Spec: 1 << 30, Value: -1},
	}}
	facts = facts.With(cluster.FactsChange{Pods: []*cluster.Pod{&web}})
	h := NewHandler(Options{Snapshot: func() SampleReader { return v }, Facts: func() *cluster.Facts { return facts }})
	cores := 100e6
	app := Applied{Container: "app", Metric: "cpu/request", Spec: 200e6, Applied: &cores}
	for path, want := range map[string]*Resize{
		"pods": {State: "Deferred", NodeMessage: "no room", Message: "Deferred: app has CPU request 100m, not 200m, proxy has memory limit none, not 1Gi",
			Applied: []Applied{app, {Container: "proxy", Metric: "memory/limit", Spec: 1 << 30}}},
		"containers": {State: "Deferred", NodeMessage: "no room", Message: "Deferred: CPU request 100m, not 200m", Applied: []Applied{app}},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+path, nil))
		var list List
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		var got *Resize
		for _, it := range list.Items {
			switch {
			case it.Namespace == "shop" && it.Pod == "web" && it.Node == "n1":
				got = it.Resize
			case it.Resize != nil:
				t.Errorf("%s: %s/%s has %+v, want no resize", path, it.Namespace, it.Pod, it.Resize)
			}
		}
		cmptest.Equal(t, path, want, got)
	}
}
