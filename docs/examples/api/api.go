// Package api is the example API of docs/extending.md: it counts, for each namespace, the pods that
// have a value for a metric.
package api

import (
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
)

// Paths returns the patterns, as http.ServeMux has them, of all that is served.
func Paths() []string { return []string{weirdev.Path + "podcounts"} }

// APIResources returns what discovery lists. Its verbs are what RBAC asks for.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: "podcounts", Kind: "PodCount", Verbs: metav1.Verbs{"list"}}}
}

// Rights returns what the caller of r needs: a number of all namespaces needs the right
// to read all of them.
func Rights(*http.Request) []rights.Right { return []rights.Right{rights.ListPods("")} }

// SampleReader is the part of the newest state that the handler reads. *memory.Snapshot implements
// it.
type SampleReader interface {
	Samples(kind metric.Kind) iter.Seq[*metric.Sample]
}

// Handler answers with a number of pods for each namespace.
type Handler struct {
	// View returns the newest state, or nil before the first round.
	View func() SampleReader
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	view := h.View()
	if view == nil {
		weirdev.Fail(w, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "nothing was read yet",
			Hint: "Ask again in a few seconds."})
		return
	}
	counts := map[metric.Namespace]int{}
	for s := range view.Samples(metric.Pod) {
		if s.Servable(metric.Memory) {
			counts[s.Entity.Namespace]++
		}
	}
	weirdev.Answer(w, http.StatusOK, counts)
}
