package clustermetrics

import (
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/common/expfmt"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Handler answers scrapes.
type Handler struct {
	http.Handler
	view        func() MetricsReader
	opts        Options
	running     chan struct{}
	expositions sync.Pool // of earlier answers, for reuse
}

// New returns a Handler that shows the state that view returns at each request. If view returns
// nil, nothing was measured yet.
func New(view func() MetricsReader, o Options) *Handler {
	o = o.withDefaults()
	h := &Handler{view: view, opts: o, running: make(chan struct{}, o.MaxRequests)}
	h.Handler = weirdev.Gzip(http.HandlerFunc(h.serve))
	return h
}

// The formats of answers. A request that accepts both equally gets text.
var (
	text        = expfmt.NewFormat(expfmt.TypeTextPlain)
	openMetrics = expfmt.NewFormat(expfmt.TypeOpenMetrics)
)

// serve answers one scrape. Query parameters narrow what is shown; see Options. It answers 400 to a
// query that it does not understand. It answers 503 before the first round, and to requests beyond
// Options.MaxRequests at once.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed: use GET", http.StatusMethodNotAllowed)
		return
	}
	asked := Options{Timestamps: h.opts.Timestamps, MaxSeries: h.opts.MaxSeries, Names: h.opts.Names}
	if err := asked.read(queryTable, r.URL.Query()); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if asked.Names == KubernetesNames {
		asked.Profile = series.All // the names are the profile
	} else if h.opts.Filter.Profile == "" && len(h.opts.Filter.Metrics) == 0 {
		asked.Filter.Usual()
	}
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("too many requests: %d are being answered already; try again later", h.opts.MaxRequests), http.StatusServiceUnavailable)
		return
	}
	view := h.view()
	if view == nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "nothing has been measured yet; try again in a few seconds", http.StatusServiceUnavailable)
		return
	}
	format := text
	if expfmt.NegotiateAccept(r.Header, text, openMetrics).FormatType() == expfmt.TypeOpenMetrics {
		format = openMetrics
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Add("Vary", "Accept")
	if r.Method == http.MethodHead {
		return
	}
	x, _ := h.expositions.Get().(*exposition)
	if x == nil {
		x = new(exposition)
	}
	defer h.expositions.Put(x)
	x.out, x.err, x.buf = w, nil, x.buf[:0]
	x.series, x.truncated = 0, false
	x.openMetrics = format == openMetrics
	x.timestamps, x.limit = asked.Timestamps, min(asked.MaxSeries, h.opts.MaxSeries)
	x.kubernetes, x.known = asked.Names == KubernetesNames, nil
	if h.opts.Facts != nil {
		x.known = h.opts.Facts()
	}
	x.write(view, filters{&h.opts.Filter, &asked.Filter})
	x.out, x.known = nil, nil
}

// filters are the sink's options and the request's. A series must pass all of them.
type filters []*series.Filter

// allPass reports whether does is true of every filter.
func (f filters) allPass(purpose func(*series.Filter) bool) bool {
	return !slices.ContainsFunc(f, func(o *series.Filter) bool { return !purpose(o) })
}

func (f filters) level(k metric.Kind) bool {
	return f.allPass(func(o *series.Filter) bool { return o.Level(k) })
}

// metrics returns which metrics of entities of kind k pass. part is the kind of
// part, or empty.
func (f filters) metrics(k metric.Kind, part string) (pass [metric.NumMetrics]bool) {
	for id := range pass {
		pass[id] = f.allPass(func(o *series.Filter) bool { return o.Metric(k, part, &metric.Catalogue[id]) })
	}
	return pass
}

// kubernetesMetrics is metrics for KubernetesNames. Patterns may match a metric's name there or among
// weir's. Profiles are of weir's names and do not count.
func (f filters) kubernetesMetrics(k metric.Kind, part string) (pass [metric.NumMetrics]bool) {
	for id := range pass {
		n := kubernetesNameOf(k, part, metric.ID(id))
		pass[id] = n != nil && f.allPass(func(o *series.Filter) bool {
			named := series.Filter{Metrics: o.Metrics}
			return named.Family(n.name) || named.Metric(k, part, &metric.Catalogue[id])
		})
	}
	return pass
}

// family reports whether a family that is not in the catalogue passes.
func (f filters) family(name string) bool {
	return f.allPass(func(o *series.Filter) bool { return o.Family(name) })
}

// matchAllNames reports whether entities with any name pass.
func (f filters) matchAllNames() bool { return f.allPass((*series.Filter).Wide) }

func (f filters) entity(l *series.Labels) bool {
	return f.allPass(func(o *series.Filter) bool { return o.Entity(l) })
}
