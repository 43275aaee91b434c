package app

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/api/model"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/app/httpserver"
	"github.com/weir-metrics/weir/autoscaler/controller"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
	"github.com/weir-metrics/weir/manager"
)

// front is what a weir has to serve, whoever asks: in a cluster those who may,
// and without one whoever is on this machine.
type front struct {
	sinks    *sinks
	facts    func() *cluster.Facts
	registry *prometheus.Registry
	pipeline httpserver.Check
	status   func() []manager.SourceStatus
	now      func() time.Time // the moment of what is served
	// autoscalers returns the HPAs that scale by a pod; nil if nobody watches them.
	autoscalers func(*cluster.Pod) []string
	// custom and external answer for metrics of pods and from outside; external is nil
	// where there are no rules.
	custom      *custommetrics.Provider
	external    *externalmetrics.Provider
	autoscaling http.Handler           // nil without a cluster
	resize      http.Handler           // nil without a cluster
	scaler      *controller.Controller // nil unless autoscalers are decided about
	usage       http.Handler
	explain     http.Handler
	model       http.Handler
	node        http.Handler // nil where nothing is known of nodes' agents
	// eviction tells how a node stands, for the page; nil where nobody can.
	eviction func(ctx context.Context, node string) (*document.Report, error)
	standIn  *standIn     // nil unless this machine is served as its kubelet does
	ui       http.Handler // made last: it shows what is decided
}

func newFront(p *plan, s *sinks, registry *prometheus.Registry, m *manager.Manager, facts func() *cluster.Facts) *front {
	f := &front{
		sinks: s, facts: facts, registry: registry, status: m.Status, now: time.Now,
		pipeline: httpserver.Check{Name: "pipeline", Waits: func() []string {
			if err := m.Ready(); err != nil {
				return []string{err.Error()}
			}
			return nil
		}},
		usage: usage.NewHandler(usage.Options{View: read(s, func(v view) usage.View { return v }), Facts: facts}),
	}
	f.model = model.NewHandler(model.Options{
		View: read(s, func(v view) model.View { return v }), Facts: facts, Sources: f.sources, Resolution: p.Resolution,
	})
	f.custom = custommetrics.New(custommetrics.Options{
		View: read(s, func(v view) custommetrics.View { return v }), Facts: facts, Sources: f.sources,
	})
	f.explain = explainapi.NewHandler(explainapi.Options{World: f.world})
	return f
}

// local returns the front for whoever is on this machine.
func (f *front) local(p *plan) *httpserver.Mux {
	mux := httpserver.NewMux("weir")
	mux.HandleHealth(f.pipeline)
	mux.Handle("/metrics", "weir's own health, for Prometheus",
		promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{Registry: f.registry}))
	mux.Handle("/metrics/cluster", "what everything uses, for Prometheus", f.sinks.prometheus)
	for _, path := range uiPaths {
		mux.Handle(path, "", f.ui)
	}
	mux.List(uiPaths[0], "the page: what everything uses, what is missing and why")
	mux.Handle(weirdev.Path, "", f.usage) // which says of any other path below what there is
	for _, r := range usage.Resources() {
		mux.List(weirdev.Path+string(r), "what "+string(r)+" use, as JSON")
	}
	for _, path := range explainapi.Paths() {
		mux.Handle(path, "", f.explain)
	}
	mux.List(weirdev.Path+"missing", "what has no number, and why, as JSON")
	scaling, resizing := f.autoscaling, f.resize
	if scaling == nil || resizing == nil {
		scaling, resizing = unclustered{}, unclustered{}
	} else {
		mux.List(weirdev.Path+resizeapi.Resource, "which requests could be smaller, as JSON")
	}
	for _, path := range autoscaling.Paths() {
		mux.Handle(path, "", scaling)
	}
	for _, path := range resizeapi.Paths() {
		mux.Handle(path, "", resizing)
	}
	if f.node != nil {
		for _, path := range nodeapi.Paths() {
			mux.Handle(path, "", f.node)
		}
	}
	if f.standIn != nil {
		f.standIn.local(mux)
	}
	if p.APIs.Model {
		for _, path := range model.Paths() {
			mux.Handle(path, "", f.model)
		}
		mux.List("/api/v1/model/", "what Heapster's clients look for")
	}
	if p.Pprof {
		mux.HandlePprof()
	}
	return mux
}

// unclustered answers what only the weir of a whole cluster can.
type unclustered struct{}

func (unclustered) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	weirdev.Fail(w, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir does not watch a whole cluster, so it knows no autoscalers and no workloads' requests",
		Hint: "Ask the weir of a cluster: with `kubectl weir`, or with --server=URL."})
}
