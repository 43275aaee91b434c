package hpaevents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	scale "github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
)

// Announcer watches the HorizontalPodAutoscalers of a cluster and announces, on
// each, which of its pods have no metrics.
type Announcer struct {
	opts    Options
	targets *targets
	table   atomic.Pointer[table]

	said          map[string]prometheus.Counter // by reason
	unsaid        prometheus.Counter
	lookupsFailed prometheus.Counter
}

// New returns an Announcer. It does nothing before Run.
func New(o Options) (*Announcer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &Announcer{opts: o, targets: newTargets(o.Refresh), said: map[string]prometheus.Counter{}}
	auto := promauto.With(o.Registerer)
	said := auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_hpa_events_total", Help: "Events written on HorizontalPodAutoscalers, by reason."}, []string{"reason"})
	for _, reason := range []string{MetricsMissing, MetricsComplete} {
		a.said[reason] = said.WithLabelValues(reason)
	}
	a.unsaid = auto.NewCounter(prometheus.CounterOpts{Name: "weir_hpa_events_failed_total", Help: "Events that could not be written; they are tried again."})
	a.lookupsFailed = auto.NewCounter(prometheus.CounterOpts{Name: "weir_hpa_lookups_failed_total", Help: "Failed questions for the pods of the workload that a HorizontalPodAutoscaler scales."})
	auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_hpa_watched", Help: "HorizontalPodAutoscalers that are watched."}, func() float64 { return float64(a.targets.count()) })
	return a, nil
}

// NewForConfig is New with a client and scales for the API server that config
// names, in place of those of o.
func NewForConfig(config *rest.Config, o Options) (*Announcer, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "weir"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	scales, err := scale.New(config)
	if err != nil {
		return nil, err
	}
	o.Client, o.Scales = client, scales
	return New(o)
}

// Autoscalers returns the HorizontalPodAutoscalers that go by a metric of p, as
// namespace/name, sorted; nil if none is known to. It takes no lock, and may be
// called before and after Run.
func (a *Announcer) Autoscalers(p *cluster.Pod) []string {
	t := a.table.Load()
	if t == nil || p == nil {
		return nil
	}
	return t.names(p)
}

// Run watches and announces until ctx ends, and returns when everything it began
// has ended. What goes wrong is logged and tried again, never returned. Run is
// called once.
func (a *Announcer) Run(ctx context.Context) error {
	// The reflector logs what it cannot do about its own retries. What an
	// operator should know is logged in watch.go.
	quiet := klog.NewContext(ctx, logr.Discard())
	var parts sync.WaitGroup
	parts.Go(func() { a.reflector().RunWithContext(quiet) })
	parts.Go(func() { a.targets.follow(ctx, a.opts.Scales, a.opts.Gap, a.lookupFailed) })
	a.loop(ctx)
	parts.Wait()
	return nil
}

// lookupFailed counts a failed lookup. It is one of many and is repeated: the log
// gets it only when asked for more.
func (a *Announcer) lookupFailed(w target, err error) {
	a.lookupsFailed.Inc()
	a.opts.Logger.Debug("the pods of an autoscaler's target are not known",
		zap.String("namespace", string(w.namespace)), zap.String("kind", w.kind), zap.String("name", w.name), zap.Error(err))
}

// loop keeps the table current and looks at the pods every Interval.
func (a *Announcer) loop(ctx context.Context) {
	book := newBook(a.opts, time.Now())
	tick := time.NewTicker(a.opts.Interval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.targets.changed:
			a.table.Store(a.targets.table())
		case <-tick.C:
			failing = a.look(ctx, book, failing)
		}
	}
}

// look looks at the pods of all autoscalers and says what is to be said. It
// returns whether that failed, as failing tells of the last time: a row of
// failures is logged once.
func (a *Announcer) look(ctx context.Context, b *book, failing bool) bool {
	world := a.opts.World()
	t := a.table.Load()
	if t == nil || world == nil || world.View == nil || world.Facts == nil || !world.Facts.Synced {
		return failing
	}
	survey := world.Survey()
	why := func(p *cluster.Pod) gap { return gapOf(p.Name, survey.Pod(p)) }
	silent := false // the API server is: the others would each wait as long
	for _, n := range b.round(time.Now(), sights(t, world.Facts, survey), a.opts.IsLeader(), why) {
		if silent {
			b.retract(n)
			continue
		}
		err := a.write(ctx, &n)
		switch {
		case ctx.Err() != nil:
			return failing
		case err != nil:
			silent = errors.Is(err, context.DeadlineExceeded)
			b.retract(n)
			a.unsaid.Inc()
			if !failing {
				a.opts.Logger.Warn("an Event cannot be written; weir needs create and patch on events.k8s.io (deploy/kustomize/components/hpa-events)",
					zap.String("autoscaler", n.hpa.full), zap.Error(err))
			}
			failing = true
		default:
			failing = false
			a.said[n.reason()].Inc()
		}
	}
	return failing
}

// sights looks at the pods of all autoscalers of t that go by CPU or memory. Who
// reads a pod through metrics.k8s.io gets both or nothing: so it is with them.
func sights(t *table, facts *cluster.Facts, survey *explain.Survey) []sight {
	index := make(map[*autoscaler]int, len(t.all))
	var all []sight
	for _, h := range t.all {
		if h.resource {
			index[h] = len(all)
			all = append(all, sight{hpa: h})
		}
	}
	for namespace := range t.spaces {
		for _, p := range facts.PodsIn(namespace) {
			if p.Phase != cluster.Running || !p.Deleted.IsZero() {
				continue // the autoscaler does not wait for its numbers
			}
			served, looked := false, false
			t.of(p, func(h *autoscaler) {
				i, ok := index[h]
				if !ok {
					return
				}
				if !looked {
					served, looked = survey.Pod(p).Served, true
				}
				all[i].running++
				if !served {
					all[i].lacking = append(all[i].lacking, p)
				}
			})
		}
	}
	return all
}
