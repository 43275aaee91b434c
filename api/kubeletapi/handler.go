package kubeletapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// The paths of a kubelet's endpoints.
const (
	ResourcePath = "/metrics/resource"
	CAdvisorPath = "/metrics/cadvisor"
	SummaryPath  = "/stats/summary"
)

// Paths returns the patterns for http.ServeMux.
func Paths() []string { return []string{ResourcePath, CAdvisorPath, SummaryPath} }

// Options configure a Handler.
type Options struct {
	// Newest has the node's newest round. Required.
	Newest *Newest
	// Facts name pods and containers that the runtime did not name. It is nil without a cluster.
	Facts func() *cluster.Facts
	// Base reads what a round lacks, or has an older value of: memory, file systems, volumes,
	// processes and averages of pressure. The Handler changes the summary. A number that could not
	// be read is nil. Errors that come with a summary are ignored. If Base is nil, a summary has
	// only the round.
	Base func(context.Context) (*stats.Summary, error)
	// CAdvisor reads the node's cgroups for /metrics/cadvisor. The result is nil only with an error;
	// errors that come with a result are ignored. If CAdvisor is nil, the endpoint has no cgroups, and
	// reports that it could not read.
	CAdvisor func(context.Context) (CAdvisor, error)
	// Image returns the image of a container whose runtime is not asked, for cAdvisor's label, or "" if
	// it is not known. If Image is nil, the label is empty.
	Image func(pod metric.PodRef, container string) string
}

// Handler serves the endpoints of a kubelet. It may serve many requests at once.
type Handler struct {
	opts     Options
	resource http.Handler
	cadvisor cadvisorReader
}

// NewHandler returns a Handler.
func NewHandler(o Options) *Handler {
	if o.Facts == nil {
		o.Facts = func() *cluster.Facts { return nil }
	}
	h := &Handler{opts: o, cadvisor: cadvisorReader{read: o.CAdvisor}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(resourceCollector{h.tree})
	h.resource = promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return h
}

// tree returns the newest round, or nil if there is none or it failed.
func (h *Handler) tree() *tree {
	r := h.opts.Newest.current.Load()
	if r == nil || r.err != nil {
		return nil
	}
	return newTree(r, h.opts.Facts())
}

// ServeHTTP answers at a kubelet's paths.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := weirdev.OnlyReads(w, r, "the endpoint is read-only"); p != nil {
		weirdev.Fail(w, p)
		return
	}
	switch r.URL.Path {
	case ResourcePath:
		h.resource.ServeHTTP(w, r)
	case CAdvisorPath:
		h.serveCAdvisor(w, r)
	case SummaryPath:
		h.summary(w, r)
	default:
		weirdev.Fail(w, &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("unknown path %q", r.URL.Path),
			Hint: "Valid paths: " + ResourcePath + ", " + CAdvisorPath + " and " + SummaryPath + "."})
	}
}

// summary answers /stats/summary.
func (h *Handler) summary(w http.ResponseWriter, r *http.Request) {
	only := r.URL.Query().Get("only_cpu_and_memory") == "true"
	t := h.tree()
	if t == nil {
		p := &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "the node has not been read yet", Hint: "Ask again in a few seconds."}
		if newest := h.opts.Newest.current.Load(); newest != nil && newest.err != nil {
			p.Message, p.Hint = "the node could not be read: "+newest.err.Error(), "See the log of the agent."
		}
		weirdev.Fail(w, p)
		return
	}
	var base *stats.Summary
	if h.opts.Base != nil && !only { // the round has CPU and memory
		base, _ = h.opts.Base(r.Context())
	}
	out := t.summary(base)
	if only {
		keepCPUAndMemory(out)
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "application/json")
		return
	}
	weirdev.Answer(w, http.StatusOK, out)
}
