package hpaevents

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/autoscaler/watcher"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// Reporter writes Events on the HorizontalPodAutoscalers that have pods without metrics.
type Reporter struct {
	opts    Options
	targets *targetSet

	written       map[string]prometheus.Counter // keyed by reason
	writesFailed  prometheus.Counter
	lookupsFailed prometheus.Counter
}

// New returns a Reporter. It does nothing before Run.
func New(o Options) (*Reporter, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Reporter{opts: o, targets: newTargetSet(o.Scales), written: map[string]prometheus.Counter{}}
	auto := promauto.With(o.Registerer)
	written := auto.NewCounterVec(prometheus.CounterOpts{Name: "weir_hpa_events_total", Help: "Events written on HorizontalPodAutoscalers, by reason."}, []string{"reason"})
	for _, reason := range []string{MetricsMissing, MetricsComplete} {
		r.written[reason] = written.WithLabelValues(reason)
	}
	r.writesFailed = auto.NewCounter(prometheus.CounterOpts{Name: "weir_hpa_events_failed_total", Help: "Events that could not be written; they are tried again."})
	r.lookupsFailed = auto.NewCounter(prometheus.CounterOpts{Name: "weir_hpa_lookups_failed_total", Help: "Failed lookups of the pods of workloads that HorizontalPodAutoscalers scale."})
	auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_hpa_watched", Help: "HorizontalPodAutoscalers that are watched."}, func() float64 { return float64(r.targets.count()) })
	o.Watcher.HandleHPAs(watcher.Handler[watcher.HPA]{
		Set:    func(h *watcher.HPA) { r.targets.setHPA(newHPAInfo(h)) },
		Delete: r.targets.deleteHPA,
	})
	return r, nil
}

// Autoscalers returns the HorizontalPodAutoscalers that use a metric of p, as namespace/name,
// sorted; nil if there is none. It may be called before and after Run.
func (r *Reporter) Autoscalers(p *cluster.Pod) (names []string) {
	if p == nil {
		return nil
	}
	for h := range r.targets.index.Matching(string(p.Namespace), p.Labels) {
		if h.pods {
			names = append(names, h.String())
		}
	}
	slices.Sort(names)
	return names
}

// Run writes Events until ctx ends, and returns when everything that it started has ended. Errors
// are logged and the request is repeated. Call Run once, and run Options.Watcher at the same time.
func (r *Reporter) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { r.targets.refreshSelectors(ctx, r.lookupFailed) })
	r.loop(ctx)
	parts.Wait()
	return nil
}

// lookupFailed counts a failed lookup. There are many lookups, and they are repeated, so the log
// has them only at level debug.
func (r *Reporter) lookupFailed(w workloadRef, err error) {
	r.lookupsFailed.Inc()
	r.opts.Logger.Debug("the pods of an autoscaler's target are not known",
		zap.String("namespace", w.namespace), zap.String("kind", w.Kind), zap.String("name", w.Name), zap.Error(err))
}

// loop checks the pods every checkInterval.
func (r *Reporter) loop(ctx context.Context) {
	throttle := newEventThrottle(burst)
	failing := false
	_ = wait.PollUntilContextCancel(ctx, checkInterval, false, func(ctx context.Context) (bool, error) {
		failing = r.checkPods(ctx, throttle, failing)
		return false, nil
	})
}

// checkPods checks the pods of all autoscalers and writes Events. It returns whether the last write
// failed. Only the first of consecutive failures is logged.
func (r *Reporter) checkPods(ctx context.Context, throttle *eventThrottle, failing bool) bool {
	explainer := r.opts.Explainer()
	if explainer == nil || explainer.View == nil || explainer.Facts == nil || !explainer.Facts.Synced {
		return failing
	}
	survey := explainer.Survey()
	cause := func(p *cluster.Pod) missingPod { return newMissingPod(p.Name, survey.Pod(p)) }
	silent := false // the API server does not answer, so no other Event is tried
	for _, n := range throttle.decideEvents(time.Now(), checkAll(r.targets, explainer.Facts, survey), r.opts.IsLeader(), cause) {
		if silent {
			throttle.retract(n)
			continue
		}
		err := r.writeEvent(ctx, &n)
		switch {
		case ctx.Err() != nil:
			return failing
		case err != nil:
			silent = errors.Is(err, context.DeadlineExceeded)
			throttle.retract(n)
			r.writesFailed.Inc()
			if !failing {
				r.opts.Logger.Warn("an Event cannot be written; weir needs create and patch on events.k8s.io (deploy/kustomize/components/hpa-events)",
					zap.String("autoscaler", n.hpa.String()), zap.Error(err))
			}
			failing = true
		default:
			failing = false
			r.written[n.reason()].Inc()
		}
	}
	return failing
}

// checkAll checks the pods of all autoscalers that use CPU or memory. metrics.k8s.io serves a pod
// with both or not at all, so this check needs both, too.
func checkAll(t *targetSet, facts *cluster.Facts, survey *explain.Survey) []podCheck {
	index := map[*hpaInfo]int{}
	namespaces := map[metric.Namespace]bool{}
	var all []podCheck
	for _, h := range t.withSelector() {
		if h.resource {
			index[h] = len(all)
			namespaces[metric.Namespace(h.Namespace)] = true
			all = append(all, podCheck{hpa: h})
		}
	}
	for namespace := range namespaces {
		for _, p := range facts.PodsIn(namespace) {
			if p.Phase != cluster.Running || !p.Deleted.IsZero() {
				continue // the autoscaler does not need its numbers
			}
			for h := range t.index.Matching(string(namespace), p.Labels) {
				i, ok := index[h]
				if !ok {
					continue
				}
				all[i].running++
				if !survey.Pod(p).Served {
					all[i].missing = append(all[i].missing, p)
				}
			}
		}
	}
	return all
}
