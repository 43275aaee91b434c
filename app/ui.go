package app

import (
	"iter"
	"net/http"
	"time"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/app/version"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/ui"
)

// uiPaths are where the page is: plain, and where kubectl proxy finds it, each as
// people type it too.
var uiPaths = [...]string{"/ui/", "/ui", weirdev.Path + "ui/", weirdev.Path + "ui"}

// newUI returns the page.
func newUI(f *front, sinks func() []manager.SinkStatus) *ui.Handler {
	o := ui.Options{
		World: f.world, Version: version.Get().Version,
		Points: func(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
			if snapshot := f.sinks.snapshot(); snapshot != nil {
				return f.sinks.view(snapshot).Points(e, id, from, to)
			}
			return func(func(time.Time, float64) bool) {}
		},
		Sinks: func() []ui.Sink {
			var all []ui.Sink
			for _, s := range sinks() {
				all = append(all, ui.Sink{Name: s.Name, LastSuccess: s.Succeeded, Err: s.Err, Queued: s.Queued, Dropped: s.Dropped})
			}
			return all
		},
	}
	o.Eviction = f.eviction
	if f.scaler != nil {
		o.Autoscaler, o.Autoscalers = f.scaler.Explain, f.scaler.All
	}
	return ui.New(o)
}

// uiNeeds is what one must be allowed for a view of the page.
func uiNeeds(r *http.Request) []server.Review {
	switch shown := ui.Shows(r); {
	case shown.Eviction != "":
		return append(everything(), nodeReview(string(shown.Eviction), nodeapi.Eviction))
	case shown.All:
		return everything()
	case shown.Name != "":
		return scalerNeeds(shown.Kind, string(shown.Namespace), shown.Name)
	case shown.Namespace != "":
		return []server.Review{server.ListPods(string(shown.Namespace))}
	}
	return nil
}
