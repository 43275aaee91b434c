package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/weir-metrics/weir/cluster/access"
)

// Options configure a Watcher. Only Client is required.
type Options struct {
	Client kubernetes.Interface
	// MaxEvents is how many Events are kept; default 10,000. Each takes about a kilobyte.
	MaxEvents int
	// MaxAge is how long an Event is kept after it happened last; default one hour.
	MaxAge time.Duration
	// Logger gets a line when Events cannot be read, and when they can again. Default: none.
	Logger *zap.Logger
	// Registerer registers the weir_events_ metrics. Default: none.
	Registerer prometheus.Registerer
}

// pageSize is the most Events that one LIST returns. A cluster can have a hundred thousand: so few are
// in memory at a time. If the Events are long, a page has fewer.
const pageSize = 500

// maxPage limits a page in bytes. Whoever may create Events in one namespace can make each 1.5 MB
// long, the most that etcd stores.
const maxPage = 4 << 20

// maxPause is the longest wait after an error.
const maxPause = 30 * time.Second

// Watcher follows the Events of the API server.
type Watcher struct {
	*Log
	o      Options
	handle []func(*Event)
	// version is that up to which Events were read; empty before the first LIST. Only Run uses it,
	// and failing.
	version string
	failing bool
	unread  atomic.Value // why Events cannot be read: a string, empty if they can
}

// NewClient returns a client for a Watcher: each of its answers has at most maxPage bytes.
func NewClient(kube *rest.Config) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(access.ListConfig(kube, maxPage))
}

// NewWatcher returns a Watcher. Run fills its Log.
func NewWatcher(o Options) *Watcher {
	o.MaxEvents = cmp.Or(max(o.MaxEvents, 0), 10_000)
	o.MaxAge = cmp.Or(max(o.MaxAge, 0), time.Hour)
	o.Logger = cmp.Or(o.Logger, zap.NewNop())
	w := &Watcher{Log: NewLog(o.MaxEvents, o.MaxAge), o: o}
	w.unread.Store("weir has not read the cluster's Events yet.")
	factory := promauto.With(o.Registerer)
	factory.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_events_kept", Help: "Events of the cluster that are in memory."},
		func() float64 { kept, _ := w.Size(); return float64(kept) })
	factory.NewCounterFunc(prometheus.CounterOpts{Name: "weir_events_dropped_total", Help: "Events of the cluster that were dropped before their time because the memory for them was full."},
		func() float64 { _, dropped := w.Size(); return float64(dropped) })
	return w
}

// HandleEvents has Run call do with each Event that is new or is counted up, after the Log has it. do
// does not wait, and changes nothing. It is called before Run.
func (w *Watcher) HandleEvents(do func(*Event)) { w.handle = append(w.handle, do) }

// Unread returns a sentence with the reason why Events cannot be read. It is empty if they can. It names no address, and
// may be called at any time.
func (w *Watcher) Unread() string {
	reason, _ := w.unread.Load().(string)
	return reason
}

// Run follows the Events until ctx ends. It always returns nil: without an API server, weir serves what
// it has.
func (w *Watcher) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.Discard()) // report logs what an operator should know
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		began := time.Now()
		w.report(w.listAndFollow(ctx))
		if time.Since(began) > maxPause {
			pause = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
	return nil
}

// listAndFollow reads all Events, and then their changes until that fails or ctx ends.
func (w *Watcher) listAndFollow(ctx context.Context) error {
	err := w.list(ctx)
	for err == nil && ctx.Err() == nil { // watches end in turn
		err = w.follow(ctx)
	}
	return err
}

// list reads all Events in pages, and takes those that were not read before: a full Log may have dropped
// them since, and they are not handled twice.
func (w *Watcher) list(ctx context.Context) error {
	o := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := w.o.Client.CoreV1().Events(metav1.NamespaceAll).List(ctx, o)
		switch {
		case errors.Is(err, access.ErrTooLarge) && o.Limit > 1:
			o.Limit = max(o.Limit/4, 1)
			continue
		case err != nil:
			return fmt.Errorf("list Events: %w", err)
		}
		for i := range page.Items {
			e := &page.Items[i]
			if order, err := resourceversion.CompareResourceVersion(e.ResourceVersion, w.version); err != nil || order > 0 {
				w.take(e)
			}
		}
		o.Limit = min(o.Limit+o.Limit/8+1, pageSize) // after long Events, short ones may follow
		if o.Continue = page.Continue; o.Continue == "" {
			w.version = page.ResourceVersion
			w.report(nil)
			return nil
		}
	}
}

// follow watches Events until the watch ends. An error means that the version is too old, or that there
// is no answer: Run lists again.
func (w *Watcher) follow(ctx context.Context) error {
	seconds := int64(300 + rand.IntN(300))
	changes, err := w.o.Client.CoreV1().Events(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{ResourceVersion: w.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return fmt.Errorf("watch Events: %w", err)
	}
	defer changes.Stop()
	began := time.Now()
	for change := range changes.ResultChan() {
		e, ok := change.Object.(*v1.Event)
		switch {
		case change.Type == watch.Error:
			return fmt.Errorf("watch Events: %w", apierrors.FromObject(change.Object))
		case !ok:
			continue
		case change.Type == watch.Added || change.Type == watch.Modified:
			w.take(e)
		}
		w.version = e.ResourceVersion
	}
	if ctx.Err() == nil && time.Since(began) < time.Second {
		return fmt.Errorf("watch Events: it ended at once")
	}
	return nil
}

// take keeps an Event. Deletions are no news: the API server deletes each Event after an hour.
func (w *Watcher) take(e *v1.Event) {
	own := convert(e)
	if !w.add(own, time.Now()) {
		return
	}
	for _, do := range w.handle {
		do(own)
	}
}

// report logs the first error, and when there is none again. A version that is too old is ordinary after
// a pause.
func (w *Watcher) report(err error) {
	switch {
	case apierrors.IsResourceExpired(err), errors.Is(err, context.Canceled):
		return
	case err != nil && !w.failing:
		w.o.Logger.Warn("the cluster's Events cannot be read; weir shows those it has", zap.Error(err))
	case err == nil && w.failing:
		w.o.Logger.Info("the cluster's Events can be read again")
	}
	w.failing = err != nil
	switch {
	case err == nil:
		w.unread.Store("")
	case apierrors.IsForbidden(err):
		w.unread.Store("weir cannot read the cluster's Events: it needs the rights list and watch on them (docs/events.md).")
	default:
		w.unread.Store("weir cannot read the cluster's Events now, and shows those it has: its log has the error.")
	}
}
