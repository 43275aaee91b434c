package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/externalmetrics"
	"github.com/weir-metrics/weir/api/kubeletapi"
	"github.com/weir-metrics/weir/api/replicas/leader"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/autoscaler/controller"
	"github.com/weir-metrics/weir/autoscaler/hpaevents"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/accounttoken"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/cmd/app/httpserver"
	"github.com/weir-metrics/weir/cmd/app/version"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/history/weirseries"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/sources/host/inspect"
	"github.com/weir-metrics/weir/sources/kubelet"
	"github.com/weir-metrics/weir/sources/player"
	"github.com/weir-metrics/weir/sources/shared"
)

// grace is how much time servers and the pipeline have to end after a signal, half of it each. Sinks
// that send have push.Options.Grace after that. Kubernetes kills the process after 20 seconds at the
// earliest (terminationGracePeriodSeconds in deploy/).
const grace = 10 * time.Second

// process is a weir that is being opened: its parts, and the values that later parts need from
// earlier ones. Each step of open adds to it. Features that are not in the plan leave their fields
// nil.
type process struct {
	plan     *plan
	out      io.Writer // for the log sink
	log      *zap.Logger
	registry *prometheus.Registry
	parts    []Part

	// The state of the cluster and of the sources, and the present time.
	facts  func() *cluster.Facts // it returns nil only without a cluster
	now    func() time.Time
	status func() []manager.SourceStatus

	// For the pipeline.
	providers []manager.Provider
	sinks     []manager.NamedSink
	manager   *manager.Manager

	cluster  *informer.Cluster
	player   *player.Player
	scrapers []*kubelet.Scraper // one for each endpoint of the kubelets
	// kubeletTokens is nil if no account is named that reads kubelets.
	kubeletTokens *accounttoken.Source
	shares        *shared.Exchange
	memory        *memory.Sink
	past          *weirseries.Reader
	record        func(*recording.ScaleTarget, time.Time) // records the scale of an autoscaler's target
	elector       *leader.Elector

	// For explanations, autoscalers and the page.
	announcer   *hpaevents.Reporter
	events      *eventlog.Watcher
	autoscaling *autoscalerClients
	custom      *custommetrics.Provider
	external    *externalmetrics.Provider
	scaler      *controller.Controller
	inspector   *inspect.Inspector
	newest      *kubeletapi.Newest
	// readCAdvisor reads this machine in cAdvisor's form; nil if this machine is not a source.
	readCAdvisor func(context.Context) (kubeletapi.CAdvisor, error)
	node         *localNode
	eviction     func(ctx context.Context, node string) (*evictionreport.EvictionReport, error)

	apis     []servedAPI
	mux      *httpserver.Mux
	localURL string   // of the local server, or empty
	urls     []string // the URLs where weir serves
}

// open opens everything in a plan, and finds mistakes before anything runs. The log sink writes to
// out.
func open(ctx context.Context, p *plan, out io.Writer, log *zap.Logger) (_ *process, err error) {
	w := &process{plan: p, out: out, log: log, registry: prometheus.NewRegistry(), memory: memory.New(p.Memory)}
	w.facts, w.now = w.currentFacts, w.currentTime
	defer func() {
		if err != nil {
			err = errors.Join(err, closeParts(w.parts))
		}
	}()
	w.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(p.Mode, version.Get()),
	)
	w.registry.MustRegister(memoryMetrics(w.memory)...)
	for _, step := range []func(context.Context) error{
		w.openCluster,
		w.openEvents,
		w.listen, // before the sources, because this fails most often
		w.openStages,
		w.openHistory,
		w.openInspector,
		w.openPipeline,
		w.openHPAEvents,
		w.openAPIs,
		w.serveLocally,
		w.openSecureServer,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// add adds an open part.
func (w *process) add(p Part) { w.parts = append(w.parts, p) }

// run runs the parts until ctx ends or one of them fails.
func (w *process) run(ctx context.Context) error {
	w.log.Info("serving", zap.Strings("addresses", w.urls))
	defer w.log.Info("ended")
	return Run(ctx, w.parts)
}

func (w *process) openCluster(context.Context) (err error) {
	if w.plan.Cluster == nil {
		return nil
	}
	o := *w.plan.Cluster
	o.Logger = w.log
	if w.cluster, err = informer.New(o); err != nil {
		return noCluster(err)
	}
	w.add(Part{Name: "cluster watch", Run: w.cluster.Run})
	return nil
}

// listen opens the port of the local server, which does not authenticate its callers.
func (w *process) listen(ctx context.Context) error {
	if w.plan.Listen == "" {
		return nil
	}
	listener, err := httpserver.Listen(ctx, w.plan.Listen, w.plan.Open)
	if err != nil {
		return err
	}
	w.localURL = "http://" + connectAddress(listener.Addr().String())
	w.urls = append(w.urls, w.localURL)
	w.add(Part{Name: "local server", Ends: EndsFirst, Close: listener.Close, Run: func(ctx context.Context) error {
		var handler http.Handler = w.mux
		if !w.plan.Open {
			handler = httpserver.LocalHosts(handler)
		}
		return httpserver.Serve(ctx, listener, handler, grace/2, w.log)
	}})
	return nil
}

// openStages opens the sources and sinks.
func (w *process) openStages(context.Context) error {
	if w.plan.SharedReads {
		w.shares = shared.New(shared.Options{Logger: w.log, Registerer: w.registry})
		w.add(Part{Name: "shared reads", Close: w.shares.Close})
	}
	for _, open := range w.plan.stages {
		if err := open(w); err != nil {
			return err
		}
	}
	if len(w.scrapers) > 0 {
		w.providers = append(w.providers, &excludedNodes{process: w})
	}
	return nil
}

// openHistory opens the Prometheus that has the metrics from before weir's memory.
func (w *process) openHistory(context.Context) error {
	if w.plan.History == nil {
		return nil
	}
	client, err := history.New(*w.plan.History)
	if err != nil {
		return fmt.Errorf("--history: %w", err)
	}
	w.past = weirseries.New(weirseries.Options{History: client, Logger: w.log, Registerer: w.registry})
	w.add(Part{Name: "history", Close: func() error { client.Close(); return nil }})
	return nil
}

func (w *process) openPipeline(context.Context) error {
	o := manager.Options{
		MaxReads: w.plan.MaxReads, Shutdown: grace / 2, Logger: w.log, Registerer: w.registry,
		Pipeline:  func(manager.Spec) []manager.Processor { return newPipeline(processors.Options{Rate: w.plan.Rate}) },
		Providers: w.providers, Sinks: w.sinks, Facts: func() *cluster.Facts { return nil },
	}
	if w.cluster != nil {
		o.Facts, o.FactsChanged = w.cluster.Facts, w.cluster.Changed()
	}
	if w.player != nil { // a nil pointer in an interface would not be nil
		o.Player = w.player
	}
	w.manager = manager.New(o)
	w.status = w.manager.Status
	w.add(Part{Name: "pipeline", Run: w.manager.Run})
	return nil
}

// openEvents opens the memory of the cluster's Events.
func (w *process) openEvents(context.Context) error {
	if !w.plan.Events {
		return nil
	}
	client, err := newClient(w.plan)
	if err != nil {
		return err
	}
	w.events = eventlog.NewWatcher(eventlog.Options{Client: client, Logger: w.log, Registerer: w.registry})
	w.add(Part{Name: "Events", Run: w.events.Run})
	return nil
}

// openHPAEvents opens the reporter of Events on autoscalers that have pods without metrics.
func (w *process) openHPAEvents(context.Context) error {
	if !w.plan.HPAEvents {
		return nil
	}
	clients, err := w.clientsOfAutoscalers()
	if err != nil {
		return err
	}
	watch, err := w.autoscalerWatcher(clients)
	if err != nil {
		return err
	}
	o := hpaevents.Options{Watcher: watch, Client: clients.kube, Scales: clients.scales, Explainer: w.explainInput, Registerer: w.registry, Logger: w.log, IsLeader: w.isLeader}
	if w.plan.Lease != nil {
		o.Instance = w.plan.Lease.identity
	}
	if w.announcer, err = hpaevents.New(o); err != nil {
		return fmt.Errorf("watch autoscalers: %w", err)
	}
	w.add(Part{Name: "HPA events", Run: w.announcer.Run})
	return nil
}

// serveLocally adds the handlers of the local server.
func (w *process) serveLocally(context.Context) error {
	if w.localURL == "" {
		return nil
	}
	w.mux = httpserver.NewMux("weir")
	w.mux.HandleHealth(w.pipelineCheck())
	w.mux.Handle("/metrics", "weir's own health, for Prometheus",
		promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{Registry: w.registry}))
	for i := range w.apis {
		w.apis[i].serveLocally(w.mux)
	}
	if w.plan.Pprof {
		w.mux.HandlePprof()
	}
	return nil
}

// pipelineCheck is the condition of /readyz.
func (w *process) pipelineCheck() server.HealthCheck {
	return server.HealthCheck{Name: "pipeline", WaitsFor: func() []string {
		if err := w.manager.Ready(); err != nil {
			return []string{err.Error()}
		}
		return nil
	}}
}

// isLeader reports whether this replica is the one that acts for all replicas.
func (w *process) isLeader() bool { return w.elector == nil || w.elector.IsLeader() }

// sends reports whether this replica is the one that sends numbers and Events to receivers. While the
// API server is away that is the last leader: numbers that two replicas send are the same series, and
// numbers that none sends are lost.
func (w *process) sends() bool { return w.elector == nil || w.elector.IsLastKnownLeader() }

// freshReads returns how many sources were read without an error in their last three intervals.
func (w *process) freshReads() (n int) {
	all, now := w.status(), time.Now()
	for i := range all {
		if s := &all[i]; s.Err == nil && !s.Succeeded.IsZero() && now.Sub(s.Succeeded) < 3*s.Interval {
			n++
		}
	}
	return n
}

// currentFacts returns the cluster facts. They are nil only without a cluster: an API server that
// has not answered yet must not look like no API server.
func (w *process) currentFacts() *cluster.Facts {
	if w.player != nil {
		return w.player.Facts()
	}
	if w.cluster == nil {
		return nil
	}
	if facts := w.cluster.Facts(); facts != nil {
		return facts
	}
	return new(cluster.Facts)
}

// currentTime is the present time or, if a recording is played, the time in the recording.
func (w *process) currentTime() time.Time {
	if w.player != nil {
		if now := w.player.Now(); !now.IsZero() {
			return now
		}
	}
	return time.Now()
}

// snapshot returns the newest snapshot, or nil before the first round.
func (w *process) snapshot() *memory.Snapshot {
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
func viewAs[V any](w *process, as func(apiView) V) func() V {
	return func() (none V) {
		if snapshot := w.snapshot(); snapshot != nil {
			return as(apiView{snapshot, w.past})
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

// explainInput returns the present input of explanations.
func (w *process) explainInput() *explain.Explainer {
	in := &explain.Explainer{Now: w.now(), Facts: w.facts(), Sources: w.sourceStates()}
	if w.announcer != nil || w.scaler != nil {
		in.Autoscalers = w.autoscalersOf
	}
	if snapshot := w.snapshot(); snapshot != nil { // a nil pointer in an interface would not be nil
		in.View = apiView{snapshot, w.past}
	}
	return in
}

// autoscalersOf returns the autoscalers that scale a pod's workload, of those that are watched.
func (w *process) autoscalersOf(p *cluster.Pod) (names []string) {
	if w.announcer != nil {
		names = w.announcer.Autoscalers(p)
	}
	if w.scaler != nil {
		names = append(names, w.scaler.Autoscalers(p)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sourceStates returns the state of each source in the type of package explain.
func (w *process) sourceStates() []explain.SourceState {
	all := w.status()
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

// connectAddress returns the address at which this machine reaches a listener. The listener may
// listen on all addresses.
func connectAddress(listening string) string {
	a, err := netip.ParseAddrPort(listening)
	if err != nil || !a.Addr().IsUnspecified() {
		return listening
	}
	return fmt.Sprintf("127.0.0.1:%d", a.Port())
}
