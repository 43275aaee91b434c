package explainapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/metric"
)

// slowKind is the kind of a SlowDocument.
const slowKind = "SlowReport"

// SlowDocument is an answer about what pods waited for, as JSON.
type SlowDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	slow.Report
}

// NewSlow returns r with its apiVersion and kind.
func NewSlow(r slow.Report) *SlowDocument {
	return &SlowDocument{weirdev.APIVersion, slowKind, r}
}

var slowRoutes = weirdev.Routes{
	{Path: "slow", Parameters: []string{"window"}},
	{Path: "namespaces/{namespace}/slow", Parameters: []string{"pod", "window"}},
}

// SlowPaths returns the patterns of what pods waited for, in the form of http.ServeMux.
func SlowPaths() []string { return slowRoutes.Patterns() }

// parseSlow returns what r asks for. An error is a *weirdev.Problem.
func parseSlow(r *http.Request) (slow.Query, error) {
	parsed, err := slowRoutes.Parse(r)
	if err != nil {
		return slow.Query{}, err
	}
	q := slow.Query{Namespace: metric.Namespace(parsed.Names["namespace"]), Pod: metric.PodName(parsed.Values["pod"])}
	if text, ok := parsed.Values["window"]; ok {
		if q.Window, err = time.ParseDuration(text); err != nil || q.Window < slow.LeastWindow || q.Window > slow.MaxWindow {
			return q, parsed.BadParameter("window %q is not a time from %v to %v, such as 5m", text, slow.LeastWindow, slow.MaxWindow)
		}
	}
	return q, nil
}

// SlowRights returns the rights that the caller of r needs: those to read the numbers of the pods.
func SlowRights(r *http.Request) []rights.Right {
	q, err := parseSlow(r)
	return podRights(q.Namespace, q.Pod, err)
}

// NewSlowHandler returns a handler for all of SlowPaths. memory returns weir's memory, or nil before the first
// round, and facts the cluster facts, which can be nil. Neighbours are pods, perhaps of other namespaces: the
// answer names those that the caller may list.
func NewSlowHandler(memory func() slow.View, facts func() *cluster.Facts) http.Handler {
	return weirdev.ReadHandler("what pods wait for is read-only", parseSlow, func(ctx context.Context, q slow.Query) (*SlowDocument, error) {
		view := memory()
		if view == nil {
			return nil, weirdev.NotMeasured()
		}
		all := hasRight(ctx, rights.ListPods(""))
		own := all || hasRight(ctx, rights.ListPods(string(q.Namespace)))
		q.MayName = func(namespace string) bool { return all || own && namespace == string(q.Namespace) }
		report, ok := slow.NewReport(q, view, facts(), time.Now())
		if !ok {
			return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("weir has no numbers of pod %s/%s", q.Namespace, q.Pod),
				Hint: fmt.Sprintf("Is the name right? `weir explain pod %s/%s` has the reason.", q.Namespace, q.Pod)}
		}
		return NewSlow(report), nil
	})
}

// SlowResources returns the resources for discovery.
func SlowResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: "slow", Kind: slowKind, Namespaced: true, Verbs: metav1.Verbs{"list"}}}
}

// Slow reports what pods waited for, and why.
func (c *Client) Slow(ctx context.Context, q slow.Query) (*slow.Report, error) {
	query := url.Values{}
	if q.Window != 0 {
		query.Set("window", q.Window.String())
	}
	subject := "what pods wait for"
	if q.Namespace != "" {
		subject = "what pods of namespace " + string(q.Namespace) + " wait for"
	}
	return getPods[slow.Report](ctx, c, "slow", metric.PodRef{Namespace: q.Namespace, Name: q.Pod}, query, subject, slowKind)
}
