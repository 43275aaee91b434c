package usage

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// Query narrows a list. An empty pattern matches everything.
type Query struct {
	Namespace, Node, Pod, Name string
	// Selector is a label selector of pods, or of nodes in a list of nodes. Empty means all.
	Selector string
	// Metrics are names or patterns of further metrics. Nil asks for every gauge
	// and rate, an empty slice for none.
	Metrics []string
	// History is how many of the last readings are wanted, at most MaxHistory.
	History int
}

// MaxHistory is the largest Query.History.
const MaxHistory = 60

// queryParameters are the parameters of a request.
var queryParameters = []string{"namespace", "node", "pod", "name", "labelSelector", "metrics", "history"}

// Values returns q as query parameters.
func (q Query) Values() url.Values {
	v := url.Values{}
	for _, p := range []struct{ name, value string }{
		{"namespace", q.Namespace}, {"node", q.Node}, {"pod", q.Pod}, {"name", q.Name}, {"labelSelector", q.Selector},
	} {
		if p.value != "" {
			v.Set(p.name, p.value)
		}
	}
	if q.Metrics != nil {
		v.Set("metrics", strings.Join(q.Metrics, ","))
	}
	if q.History > 0 {
		v.Set("history", strconv.Itoa(q.History))
	}
	return v
}

// newQuery is the inverse of Values. It returns an error for a selector or a number that does not parse,
// and for metrics that match nothing in the catalogue.
func newQuery(values map[string]string) (Query, error) {
	q := Query{Namespace: values["namespace"], Node: values["node"], Pod: values["pod"], Name: values["name"], Selector: values["labelSelector"]}
	if text, ok := values["metrics"]; ok {
		q.Metrics = []string{}
		for m := range strings.SplitSeq(text, ",") {
			if m = strings.TrimSpace(m); m != "" {
				q.Metrics = append(q.Metrics, m)
			}
		}
	}
	if text := values["history"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > MaxHistory {
			return Query{}, fmt.Errorf("history %q is not a number from 0 to %d", text, MaxHistory)
		}
		q.History = n
	}
	if _, err := labels.Parse(q.Selector); err != nil {
		return Query{}, fmt.Errorf("labelSelector %q does not parse: %w; write it as app=web,tier!=cache", q.Selector, err)
	}
	if _, err := chooseMetrics(q.Metrics); err != nil {
		return Query{}, err
	}
	return q, nil
}

// metricChoice shows which metrics go into Item.Metrics, and which groups may have reasons in
// Item.Reasons.
type metricChoice struct {
	metrics [metric.NumMetrics]bool
	shown   [metric.NumGroups]bool // groups with a chosen metric
	groups  [metric.NumGroups]bool // groups with reasons
}

func chooseMetrics(patterns []string) (*metricChoice, error) {
	c := &metricChoice{}
	c.groups[metric.CPU], c.groups[metric.Memory] = true, true
	take := func(d *metric.Descriptor) {
		// These two have fields of their own.
		if d.ID != metric.CPUUsageRate && d.ID != metric.MemoryWorkingSet {
			c.metrics[d.ID], c.shown[d.Group] = true, true
		}
		if patterns != nil {
			c.groups[d.Group] = true
		}
	}
	if patterns == nil {
		for i := range metric.Catalogue {
			if d := &metric.Catalogue[i]; d.Type != metric.Cumulative {
				take(d)
			}
		}
		return c, nil
	}
	for _, p := range patterns {
		found := false
		for i := range metric.Catalogue {
			if d := &metric.Catalogue[i]; fits(p, d.Name) {
				take(d)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no metric matches %q: docs/metrics.md lists them", p)
		}
	}
	return c, nil
}

// fits reports whether s fits a pattern. The empty pattern fits everything.
func fits(pattern, s string) bool { return pattern == "" || series.Match(pattern, s) }

// Request is what a caller asks for.
type Request struct {
	Resource Resource
	Query    Query
	// Everywhere reports that the answer may show more than the one namespace that Query names.
	Everywhere bool
}

// ParseRequest reads the path and the query of r. An error in them is a *weirdev.Problem. Rights
// and the handler both use it, so that access is reviewed for exactly what is served.
func ParseRequest(r *http.Request) (Request, error) {
	parsed, err := routes.Parse(r)
	if err != nil {
		return Request{}, err
	}
	q, err := newQuery(parsed.Values)
	if err != nil {
		return Request{}, parsed.BadParameter("%v", err)
	}
	resource := Resource(path.Base(parsed.Path))
	namespace, limit := parsed.Names["namespace"]
	if !limit {
		return Request{resource, q, !resource.Namespaced() || !isNamespaceName(q.Namespace)}, nil
	}
	_, twice := parsed.Values["namespace"]
	switch {
	case twice:
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: "both the path and the query name a namespace",
			Hint: "Leave namespace out of the query, or use " + weirdev.Path + string(resource) + "."}
	case !isNamespaceName(namespace):
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: strconv.Quote(namespace) + " is not a valid name of a namespace",
			Hint: "Write a pattern in the query: " + weirdev.Path + string(resource) + "?namespace=PATTERN."}
	}
	q.Namespace = namespace
	return Request{resource, q, false}, nil
}

// isNamespaceName reports whether s is a valid name of a namespace. Then it is not a pattern, and a
// path needs no escapes for it.
func isNamespaceName(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

var routes = func() (all weirdev.Routes) {
	for _, r := range Resources() {
		all = append(all, weirdev.Route{Path: string(r), Parameters: queryParameters, EmptyValues: true})
		if r.Namespaced() {
			all = append(all, weirdev.Route{Path: "namespaces/{namespace}/" + string(r), Parameters: queryParameters, EmptyValues: true})
		}
	}
	return all
}()

// Paths returns the patterns of all that is served, in the form of http.ServeMux.
func Paths() []string { return routes.Patterns() }

// APIResources returns the resources for discovery, one for each kind of list.
func APIResources() (all []metav1.APIResource) {
	for _, r := range Resources() {
		all = append(all, metav1.APIResource{Name: string(r), Kind: r.Kind(), Namespaced: r.Namespaced(), Verbs: metav1.Verbs{"list"}})
	}
	return all
}
