package explainapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
)

// deathKind is the kind of a DeathDocument.
const deathKind = "DeathReport"

// DeathDocument is an answer about what ended, and why, as JSON.
type DeathDocument struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	death.Report
}

// NewDeaths returns r with its apiVersion and kind.
func NewDeaths(r death.Report) *DeathDocument {
	return &DeathDocument{weirdev.APIVersion, deathKind, r}
}

var deathRoutes = weirdev.Routes{
	{Path: "deaths"},
	{Path: "namespaces/{namespace}/deaths", Parameters: []string{"pod", "container"}},
}

// DeathPaths returns the patterns of the deaths, in the form of http.ServeMux.
func DeathPaths() []string { return deathRoutes.Patterns() }

// parseDeaths returns what r asks for. An error is a *weirdev.Problem.
func parseDeaths(r *http.Request) (death.Query, error) {
	parsed, err := deathRoutes.Parse(r)
	if err != nil {
		return death.Query{}, err
	}
	q := death.Query{Namespace: metric.Namespace(parsed.Names["namespace"]), Pod: metric.PodName(parsed.Values["pod"]), Container: parsed.Values["container"]}
	if q.Container != "" && q.Pod == "" {
		return q, parsed.BadParameter("container names one of a pod: name the pod, too")
	}
	return q, nil
}

// DeathRights returns the rights that the caller of r needs: those to read the numbers of the pods.
func DeathRights(r *http.Request) []rights.Right {
	q, err := parseDeaths(r)
	return podRights(q.Namespace, q.Pod, err)
}

// NewDeathHandler returns a handler for all of DeathPaths. ends is nil if weir watches no cluster, and
// events if it keeps no Events. refresh, which may be nil, has the agent of a pod's node asked first. What
// a container wrote about its end, which can be lines of its log, is shown to callers that may see the pods
// in the API server.
func NewDeathHandler(ends death.EndReader, events death.EventReader, refresh func(context.Context, metric.PodRef)) http.Handler {
	return weirdev.ReadHandler("deaths are read-only", parseDeaths, func(ctx context.Context, q death.Query) (*DeathDocument, error) {
		if ends == nil {
			return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: "this weir watches no cluster, so it does not know what ended",
				Hint: "Ask the weir of a cluster: with `kubectl weir`, or with --server=URL."}
		}
		q.Words = hasRight(ctx, rights.SeePods(string(q.Namespace), string(q.Pod)))
		if q.Pod != "" && refresh != nil {
			refresh(ctx, metric.PodRef{Namespace: q.Namespace, Name: q.Pod})
		}
		return NewDeaths(death.NewReport(q, ends, events, time.Now())), nil
	})
}

// DeathResources returns the resources for discovery.
func DeathResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: "deaths", Kind: deathKind, Namespaced: true, Verbs: metav1.Verbs{"list"}}}
}

// Deaths reports what ended in the last hour, and why.
func (c *Client) Deaths(ctx context.Context, q death.Query) (*death.Report, error) {
	query := url.Values{}
	if q.Container != "" {
		query.Set("container", q.Container)
	}
	subject := "deaths"
	if q.Namespace != "" {
		subject += " in namespace " + string(q.Namespace)
	}
	return getPods[death.Report](ctx, c, "deaths", metric.PodRef{Namespace: q.Namespace, Name: q.Pod}, query, subject, deathKind)
}
