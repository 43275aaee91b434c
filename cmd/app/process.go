package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/adapters"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
	"github.com/weir-metrics/weir/cmd/app/logging"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/internal/feature"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/history/weirseries"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/player"
)

// weirProcess is a weir that is being opened. Its features share the Host and add their parts to it; the
// other fields are what measures, and what serves.
type weirProcess struct {
	*feature.Host
	plan     *plan
	memory   *memory.Sink
	past     *weirseries.Reader // what a Prometheus has from before the memory
	pipeline pipelineStages
	kubelets kubeletReaders
	node     *thisNode // nil unless this machine is read
	custom   provider.CustomMetricsProvider
	external provider.ExternalMetricsProvider // nil without rules and adapters
	served   served
	started  time.Time // by the clock, also where a recording is played
}

// pipelineStages are what reads the sources and fills the sinks.
type pipelineStages struct {
	*manager.Manager // nil until everything is added
	providers        []manager.Provider
	sinks            []manager.NamedSink
	player           *player.Player // nil unless a recording is played
	out              io.Writer      // of the log sink
}

// served is what this weir serves, and where.
type served struct {
	apis     []servedAPI
	mux      *httpserver.Mux
	localURL string   // of the local server, or empty
	urls     []string // the URLs where weir serves
}

// open opens everything in a plan, in this order, and finds mistakes before anything runs. The log
// sink writes to out.
func open(ctx context.Context, p *plan, out io.Writer, log *zap.Logger) (_ *weirProcess, err error) {
	w := newProcess(p, out, log)
	defer func() {
		if err != nil {
			err = errors.Join(err, feature.Close(w.Parts))
		}
	}()
	w.Registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(p.Mode, version.Get()),
	)
	w.Registry.MustRegister(memoryMetrics(w.memory)...)
	f := p.features
	for _, open := range []func(context.Context, *feature.Host) error{
		w.openCluster,
		f.events.Open,
		w.listen, // before the sources, because this fails most often
		w.openStages,
		w.openHistory,
		w.openNode,
		w.openPipeline,
		f.replicas.Open, // before the features that act, which ask who leads
		f.autoscalerClients.Open,
		f.hpaEvents.Open,
		w.openDerivedMetrics,
		f.autoscaler.Open, // scales workloads, if a flag asks for it
		f.guard.Open,      // evicts or kills pods, if a flag asks for it
		f.kills.Open,
		f.agents.Open,
		w.openAPIs,
		w.serveLocally,
		w.openSecureServer,
	} {
		if err := open(ctx, w.Host); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// newProcess returns a process that has opened nothing yet, and connects its features with each
// other.
func newProcess(p *plan, out io.Writer, log *zap.Logger) *weirProcess {
	w := &weirProcess{
		Host:     &feature.Host{Log: log, Logr: logging.Logr(log), Registry: prometheus.NewRegistry(), Resolution: p.Resolution},
		plan:     p,
		memory:   memory.New(p.Memory),
		pipeline: pipelineStages{out: out},
		started:  time.Now(),
	}
	w.Facts, w.Now = w.currentFacts, w.currentTime
	f := p.features
	f.hpaEvents.Explainer, f.hpaEvents.Instance = w.explainInput, f.replicas.Instance()
	f.replicas.IsReady = func() bool { return w.pipeline.Ready() == nil }
	f.replicas.FreshReads = func() int { return freshReads(w.pipeline.Status(), time.Now()) }
	return w
}

// run runs the parts until ctx ends or one of them fails.
func (w *weirProcess) run(ctx context.Context) error {
	w.Log.Info("serving", zap.Strings("addresses", w.served.urls))
	defer w.Log.Info("ended")
	return feature.Run(ctx, w.Parts)
}

func (w *weirProcess) openCluster(_ context.Context, h *feature.Host) error {
	if w.plan.Cluster == nil {
		return nil
	}
	o := *w.plan.Cluster
	o.Logger, o.Ends = h.Log, endlog.New(endlog.Options{Killed: func(e *endlog.End) {
		if kills := w.plan.features.agents.Kills(); kills != nil {
			kills.Want(e.Pod.Node)
		}
	}})
	o.Ends.SetUsage(w.usageBefore)
	watch, err := informer.New(o)
	if err != nil {
		return feature.NoCluster(err)
	}
	h.Cluster = &feature.Cluster{Cluster: watch, Options: o}
	h.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_nodes_left_out", Help: "Number of nodes that are not read because the cluster has more than --max-nodes.",
	}, func() float64 { return float64(watch.Facts().LeftOutNodes()) }), prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_deaths_dropped_total", Help: "Ends of containers and pods that were dropped before their time because the memory for them was full.",
	}, func() float64 { _, dropped := o.Ends.Size(); return float64(dropped) }))
	h.Add(feature.Part{Name: "cluster watch", Run: watch.Run})
	return nil
}

// listen opens the port of the local server, which does not authenticate its callers.
func (w *weirProcess) listen(ctx context.Context, h *feature.Host) error {
	if w.plan.Listen == "" {
		return nil
	}
	listener, err := httpserver.Listen(ctx, w.plan.Listen, w.plan.Open)
	if err != nil {
		return err
	}
	w.served.localURL = "http://" + connectAddress(listener.Addr().String())
	w.served.urls = append(w.served.urls, w.served.localURL)
	h.Add(feature.Part{Name: "local server", Ends: feature.EndsFirst, Close: listener.Close, Run: func(ctx context.Context) error {
		var handler http.Handler = w.served.mux
		if !w.plan.Open {
			handler = httpserver.LocalHosts(handler)
		}
		return httpserver.Serve(ctx, listener, handler, feature.Grace/2, h.Log)
	}})
	return nil
}

// openStages opens the sources and sinks.
func (w *weirProcess) openStages(_ context.Context, h *feature.Host) error {
	if w.plan.features.replicas.SharesReads {
		w.shareReads()
	}
	for _, open := range w.plan.stages {
		if err := open(w); err != nil {
			return err
		}
	}
	if len(w.kubelets.scrapers) > 0 {
		w.pipeline.providers = append(w.pipeline.providers, &excludedNodes{plan: w.plan, scrapers: w.kubelets.scrapers})
	}
	return nil
}

// openHistory opens the Prometheus that has the metrics from before weir's memory.
func (w *weirProcess) openHistory(_ context.Context, h *feature.Host) error {
	if w.plan.History == nil {
		return nil
	}
	client, err := history.New(*w.plan.History)
	if err != nil {
		return fmt.Errorf("--history: %w", err)
	}
	w.past = weirseries.New(weirseries.Options{History: client, Logger: h.Log, Registerer: h.Registry})
	h.Add(feature.Part{Name: "history", Close: func() error { client.Close(); return nil }})
	return nil
}

func (w *weirProcess) openPipeline(_ context.Context, h *feature.Host) error {
	o := manager.Options{
		MaxReads: w.plan.MaxReads, Shutdown: feature.Grace / 2, Logger: h.Log, Registerer: h.Registry,
		Pipeline:  func(manager.Spec) []manager.Processor { return newPipeline(processors.Options{Rate: w.plan.Rate}) },
		Providers: w.pipeline.providers, Sinks: w.pipeline.sinks, Facts: func() *cluster.Facts { return nil },
	}
	if h.Cluster != nil {
		o.Facts, o.FactsChanged = h.Cluster.Facts, h.Cluster.Changed()
	}
	if w.pipeline.player != nil { // a nil pointer in an interface would not be nil
		o.Player = w.pipeline.player
	}
	w.pipeline.Manager = manager.New(o)
	h.Add(feature.Part{Name: "pipeline", Run: w.pipeline.Run})
	return nil
}

// serveLocally adds the handlers of the local server.
func (w *weirProcess) serveLocally(_ context.Context, h *feature.Host) error {
	if w.served.localURL == "" {
		return nil
	}
	mux := httpserver.NewMux("weir")
	mux.HandleHealth(w.readyCheck())
	mux.Handle("/metrics", "weir's own health, for Prometheus",
		promhttp.HandlerFor(h.Registry, promhttp.HandlerOpts{Registry: h.Registry}))
	for i := range w.served.apis {
		w.served.apis[i].serveLocally(mux)
	}
	if w.plan.Pprof {
		mux.HandlePprof()
	}
	w.served.mux = mux
	return nil
}

// readyCheck is the condition of /readyz. Its name is that of metrics-server's.
func (w *weirProcess) readyCheck() server.HealthCheck {
	return healthCheck("metric-storage-ready", w.pipeline.Ready)
}

func healthCheck(name string, check func() error) server.HealthCheck {
	return server.HealthCheck{Name: name, WaitsFor: func() []string {
		if err := check(); err != nil {
			return []string{err.Error()}
		}
		return nil
	}}
}

// freshReads returns how many sources were read without an error in their last three intervals.
func freshReads(all []manager.SourceStatus, now time.Time) (n int) {
	for i := range all {
		if s := &all[i]; s.Err == nil && !s.Succeeded.IsZero() && now.Sub(s.Succeeded) < 3*s.Interval {
			n++
		}
	}
	return n
}

// currentFacts returns the cluster facts. They are nil only without a cluster: an API server that
// has not answered yet must not look like no API server.
func (w *weirProcess) currentFacts() *cluster.Facts {
	if w.pipeline.player != nil {
		return w.pipeline.player.Facts()
	}
	if w.Cluster == nil {
		return nil
	}
	if facts := w.Cluster.Facts(); facts != nil {
		return facts
	}
	return new(cluster.Facts)
}

// currentTime is the present time or, if a recording is played, the time in the recording.
func (w *weirProcess) currentTime() time.Time {
	if w.pipeline.player != nil {
		if now := w.pipeline.player.Now(); !now.IsZero() {
			return now
		}
	}
	return time.Now()
}

// snapshot returns the newest snapshot, or nil before the first round.
func (w *weirProcess) snapshot() *memory.Snapshot {
	snapshot := w.memory.Snapshot()
	if snapshot == nil || snapshot.At().IsZero() {
		return nil
	}
	return snapshot
}

// apiView is a snapshot with the methods that all APIs read.
type apiView struct {
	*memory.Snapshot
	past *weirseries.Reader
}

// viewAs returns a function that returns the newest snapshot as an API's own interface, or nil
// before the first round.
func viewAs[V any](w *weirProcess, convert func(apiView) V) func() V {
	return func() (none V) {
		if snapshot := w.snapshot(); snapshot != nil {
			return convert(apiView{snapshot, w.past})
		}
		return none
	}
}

// Verdicts yields the verdicts on missing or doubtful numbers, without errors that contain
// addresses.
func (v apiView) Verdicts() iter.Seq2[metric.Verdict, time.Time] {
	return explain.RedactErrors(v.Snapshot.Verdicts())
}

// VerdictsOn yields the verdicts on one node.
func (v apiView) VerdictsOn(node metric.NodeName) iter.Seq2[metric.Verdict, time.Time] {
	return explain.RedactErrors(v.Snapshot.VerdictsOn(node))
}

// Points yields the history of a metric of an entity: from memory and, for earlier times, from the
// Prometheus of --history.
func (v apiView) Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		points := v.History(e, id, from, to)
		var first time.Time
		if len(points) > 0 {
			first = time.Unix(0, points[0].Time)
		}
		for _, p := range v.past.PointsBefore(first, e, id, from, to) {
			if !yield(p.At, p.Value) {
				return
			}
		}
		for _, p := range points {
			if !yield(time.Unix(0, p.Time), p.Value) {
				return
			}
		}
	}
}

// points yields the history of a metric of an entity, as apiView.Points does. It yields nothing before the
// first round.
func (w *weirProcess) points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	if snapshot := w.snapshot(); snapshot != nil {
		return apiView{snapshot, w.past}.Points(e, id, from, to)
	}
	return func(func(time.Time, float64) bool) {}
}

// usageBefore returns what was used before an end, from weir's own memory: a Prometheus could take long
// to answer.
func (w *weirProcess) usageBefore(e *endlog.End) endlog.Usage {
	if snapshot := w.snapshot(); snapshot != nil {
		return death.Measure(apiView{Snapshot: snapshot}.Points, e)
	}
	return endlog.Usage{}
}

// slowView returns what shows who waited for what, from weir's own memory; nil before the first round.
func (w *weirProcess) slowView() slow.View {
	if snapshot := w.snapshot(); snapshot != nil {
		return apiView{Snapshot: snapshot}
	}
	return nil
}

// slow reports what pods waited for; false before the first round.
func (w *weirProcess) slow(q slow.Query) (slow.Report, bool) {
	view := w.slowView()
	if view == nil {
		return slow.Report{}, false
	}
	return slow.NewReport(q, view, w.Facts(), time.Now())
}

// explainInput returns the present input of explanations.
func (w *weirProcess) explainInput() *explain.Explainer {
	in := &explain.Explainer{Now: w.Now(), Started: w.started, Facts: w.Facts(), Sources: w.sourceStates(), Autoscalers: w.plan.features.autoscalersOf, Receivers: w.receiversInTrouble()}
	if w.ends() != nil {
		in.Deaths = w.deathsOf
	}
	if router, ok := w.custom.(*adapters.Router); ok {
		in.Adapters = router.InTrouble()
	}
	if snapshot := w.snapshot(); snapshot != nil { // a nil pointer in an interface would not be nil
		in.View = apiView{snapshot, w.past}
	}
	return in
}

// sourceStates returns the state of each source in the type of package explain.
func (w *weirProcess) sourceStates() []explain.SourceState { return sourceStates(w.pipeline.Status()) }

func sourceStates(all []manager.SourceStatus) []explain.SourceState {
	sources := make([]explain.SourceState, len(all))
	for i := range all {
		s := &all[i]
		sources[i] = explain.SourceState{
			Name: s.Kind, Node: s.Node, Interval: s.Interval,
			LastRead: s.Began, LastSuccess: s.Succeeded, Due: s.Due, Took: s.Took, Bytes: s.Bytes, ClockAhead: s.ClockAhead, Unread: s.Unread, FailingSince: s.FailingSince, Err: s.Err,
		}
	}
	return sources
}

func buildInfo(mode string, v version.Info) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Which weir this is. Always 1.",
		ConstLabels: prometheus.Labels{"mode": mode, "version": v.Version, "commit": v.Commit, "go": v.Go},
	})
	g.Set(1)
	return g
}

// memoryMetrics are the size of the memory sink, and what its bound dropped.
func memoryMetrics(s *memory.Sink) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_memory_entities", Help: "Number of nodes, pods, containers and parts of them in memory, counted once for each source.",
		}, func() float64 { return float64(s.Stats().Entities) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_memory_history_bytes", Help: "Size of the history in memory.",
		}, func() float64 { return float64(s.Stats().HistoryBytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "weir_memory_dropped_samples_total", Help: "Number of samples that were dropped because of the option entities of the memory sink.",
		}, func() float64 { return float64(s.Stats().Dropped) }),
	}
}

// shownURL returns the URL of an HTTPS listener for people. It works on this machine.
func shownURL(listening string) string {
	local := connectAddress(listening)
	if local != listening {
		return "https://" + local + " (all addresses)"
	}
	return "https://" + local
}

// connectAddress returns the address at which this machine reaches a listener. The listener may
// listen on all addresses.
func connectAddress(listening string) string {
	a, err := netip.ParseAddrPort(listening)
	if err != nil || !a.Addr().IsUnspecified() {
		return listening
	}
	return fmt.Sprintf("127.0.0.1:%d", a.Port())
}
