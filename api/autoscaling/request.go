package autoscaling

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
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

// Paths returns the patterns of all paths, for http.ServeMux.
func Paths() []string {
	return []string{
		weirdev.Path + "namespaces/{namespace}/" + HPAs + "/{name}/explanation",
		weirdev.Path + "namespaces/{namespace}/" + Autoscalers + "/{name}/explanation",
		weirdev.Path + "namespaces/{namespace}/" + Evaluations,
	}
}

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
	request, ok := parsePath(r.URL.EscapedPath())
	if !ok {
		return Request{}, &weirdev.Problem{Status: http.StatusNotFound, Message: "nothing is at " + strconv.Quote(r.URL.Path),
			Hint: "There are namespaces/NAME/" + HPAs + "/NAME/explanation, namespaces/NAME/" + Autoscalers + "/NAME/explanation and namespaces/NAME/" + Evaluations + " below " + weirdev.Path + "."}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if weirdev.Moot(name) {
			continue
		}
		if err := request.setParameter(name, values[name], now); err != nil {
			return Request{}, err
		}
	}
	return request, nil
}

// setParameter sets one query parameter.
func (r *Request) setParameter(name string, value []string, now time.Time) error {
	bad := func(message, hint string) error {
		return &weirdev.Problem{Status: http.StatusBadRequest, Message: message, Hint: hint}
	}
	switch {
	case !r.Evaluate:
		return bad(fmt.Sprintf("unknown parameter %q", name), "An explanation has none.")
	case name != "at" && name != "replicas":
		return bad(fmt.Sprintf("unknown parameter %q", name), "Only at and replicas are known.")
	case len(value) != 1 || value[0] == "":
		return bad(name+" is to be given once, with a value", "Leave it out for what there is now.")
	}
	if name == "at" {
		at, err := ParseTime(value[0], now)
		if err == nil && at.IsZero() {
			err = fmt.Errorf("%q is no time that anybody remembers", value[0]) // a zero time would mean now
		}
		if err != nil {
			return bad("at: "+err.Error(), "Write a time as 2026-01-02T12:00:00Z, or how long ago: 5m.")
		}
		r.At = at
		return nil
	}
	n, err := strconv.ParseInt(value[0], 10, 32)
	if err != nil || n < 0 || n > maxReplicas {
		return bad(fmt.Sprintf("replicas: %q is no count", value[0]), fmt.Sprintf("It is a number from 0 to %d.", maxReplicas))
	}
	replicas := int32(n)
	r.Replicas = &replicas
	return nil
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

// parsePath parses an escaped path.
func parsePath(escaped string) (r Request, ok bool) {
	parts, names, ok := weirdev.Parts(escaped)
	if !ok {
		return Request{}, false
	}
	switch {
	case len(parts) < 3 || parts[0] != "namespaces":
		return Request{}, false
	case len(parts) == 3 && parts[2] == Evaluations:
		return Request{Namespace: names[1], Evaluate: true}, true
	case len(parts) == 5 && parts[4] == "explanation" && parts[2] == HPAs:
		return Request{Namespace: names[1], Kind: manifest.HorizontalPodAutoscaler, Name: names[3]}, true
	case len(parts) == 5 && parts[4] == "explanation" && parts[2] == Autoscalers:
		return Request{Namespace: names[1], Kind: manifest.Autoscaler, Name: names[3]}, true
	}
	return Request{}, false
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
