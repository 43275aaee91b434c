package autoscaling

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/manifest"
)

// The resources in paths and access rules.
const (
	HPAs        = "horizontalpodautoscalers"
	Autoscalers = "autoscalers"
	Evaluations = "evaluations"
)

const inNamespace = "namespaces/{namespace}/"

var routes = weirdev.Routes{
	{Path: inNamespace + HPAs + "/{name}/explanation"},
	{Path: inNamespace + Autoscalers + "/{name}/explanation"},
	{Path: inNamespace + Evaluations, Parameters: []string{"at", "replicas"}},
}

// Paths returns the patterns of all paths, for http.ServeMux.
func Paths() []string { return routes.Patterns() }

// Request is a parsed request: for the explanation of an autoscaler or, with Evaluate, for what a
// manifest would do.
type Request struct {
	Namespace string
	Kind      string // HorizontalPodAutoscaler or Autoscaler; empty for an evaluation
	Name      string
	Evaluate  bool
	At        time.Time // of an evaluation; zero for now
	Replicas  *int32
}

// maxReplicas is the largest count that may be assumed.
const maxReplicas = 1_000_000

// ParseRequest parses the path and the query of r. Errors are *weirdev.Problem. Authorization and
// handler use the same parser. A duration in the query counts back from now.
func ParseRequest(r *http.Request, now time.Time) (Request, error) {
	parsed, err := routes.Parse(r)
	if err != nil {
		return Request{}, err
	}
	request := Request{Namespace: parsed.Names["namespace"], Name: parsed.Names["name"]}
	switch parsed.Path {
	case inNamespace + Evaluations:
		request.Evaluate = true
	case inNamespace + Autoscalers + "/{name}/explanation":
		request.Kind = manifest.Autoscaler
	default:
		request.Kind = manifest.HorizontalPodAutoscaler
	}
	if text, ok := parsed.Values["at"]; ok {
		request.At, err = ParseTime(text, now)
		if err == nil && request.At.IsZero() {
			err = fmt.Errorf("%q is too long ago", text) // a zero time would mean now
		}
		if err != nil {
			return Request{}, parsed.BadParameter("at: %v; write a time as 2026-01-02T12:00:00Z, or how long ago: 5m", err)
		}
	}
	if text, ok := parsed.Values["replicas"]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 || n > maxReplicas {
			return Request{}, parsed.BadParameter("replicas: %q is not a number from 0 to %d", text, maxReplicas)
		}
		request.Replicas = new(int32(n))
	}
	return request, nil
}

// ParseTime parses a time: RFC 3339, or how long before now.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(strings.TrimPrefix(text, "-")); err == nil {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time nor how long ago", text)
	}
	return at, nil
}

// pathAndQuery returns the path below weirdev.Path and the query for r. It is the inverse of
// ParseRequest.
func (r Request) pathAndQuery() (path []string, query url.Values) {
	if !r.Evaluate {
		resource := HPAs
		if r.Kind == manifest.Autoscaler {
			resource = Autoscalers
		}
		return []string{"namespaces", r.Namespace, resource, r.Name, "explanation"}, nil
	}
	query = url.Values{}
	if !r.At.IsZero() {
		query.Set("at", r.At.UTC().Format(time.RFC3339Nano))
	}
	if r.Replicas != nil {
		query.Set("replicas", strconv.FormatInt(int64(*r.Replicas), 10))
	}
	return []string{"namespaces", r.Namespace, Evaluations}, query
}

// String describes the request.
func (r Request) String() string {
	if r.Evaluate {
		return "an evaluation in namespace " + r.Namespace
	}
	return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
}

// APIResources returns the resources for discovery.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{
		{Name: HPAs + "/explanation", Kind: ExplanationKind, Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: Autoscalers + "/explanation", Kind: ExplanationKind, Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: Evaluations, Kind: EvaluationKind, Namespaced: true, Verbs: metav1.Verbs{"create"}},
	}
}
