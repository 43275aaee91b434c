package resizeapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

var routes = weirdev.Routes{
	{Path: Resource, Parameters: Parameters[:len(Parameters)-1]},
	{Path: "namespaces/{namespace}/" + Resource, Parameters: Parameters},
	{Path: "namespaces/{namespace}/" + Resource + "/{name}", Parameters: Parameters[:len(Parameters)-2]},
}

// Paths returns the patterns of the API for http.ServeMux.
func Paths() []string { return routes.Patterns() }

// Request is a request for the recommendations of the cluster, of a namespace, of one pod or of one
// workload.
type Request struct {
	Namespace, Pod string
	// Workload is a workload of the namespace.
	Workload cluster.Owner
	// Workloads means recommendations for workloads, not for pods.
	Workloads bool
	Options   resize.Options
	// All also includes pods that have no proposal.
	All bool
	// Loads adds the loads of all workloads. It is not a parameter of the API: only the answer for one
	// workload has them there.
	Loads bool

	query url.Values // the parameters that were set
}

// NewRequest returns a request with the default options.
func NewRequest(namespace, pod string) Request {
	return Request{Namespace: namespace, Pod: pod, Options: resize.Defaults(), query: url.Values{}}
}

// Clone returns a copy of r that Set can change.
func (r Request) Clone() Request {
	r.query = maps.Clone(r.query)
	return r
}

// Parameters are the names of the parameters that Set takes.
var Parameters = []string{"estimator", "percentile", "headroom", "floor", "memory-percentile", "memory-headroom", "memory-floor", "resources", "min-history", "up", "limits", "all", "workloads", "workload"}

// Kinds are the kinds of workloads that Kubernetes has. A request may have them in lower case.
var Kinds = []string{"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"}

// ParseRequest parses the path and the query of r. Its error is a *weirdev.Problem. Rights uses it
// too, so that rights are checked for the same request that is answered.
func ParseRequest(r *http.Request) (Request, error) {
	parsed, err := routes.Parse(r)
	if err != nil {
		return Request{}, err
	}
	request := NewRequest(parsed.Names["namespace"], parsed.Names["name"])
	for _, name := range slices.Sorted(maps.Keys(parsed.Values)) {
		if err := request.Set(name, parsed.Values[name]); err != nil {
			return Request{}, parsed.BadParameter("%v", err)
		}
	}
	if err := request.Validate(); err != nil {
		return Request{}, parsed.BadParameter("%v", err)
	}
	return request, nil
}

// Set sets a parameter.
func (r *Request) Set(name, text string) error {
	o := &r.Options
	var err error
	switch name {
	case "estimator":
		o.Tool, err = estimate.ParseTool(text)
	case "percentile":
		o.CPU.Percentile, err = strconv.ParseFloat(text, 64)
	case "memory-percentile":
		o.Memory.Percentile, err = strconv.ParseFloat(text, 64)
	case "headroom":
		o.CPU.Headroom, err = parseShare(text)
	case "memory-headroom":
		o.Memory.Headroom, err = parseShare(text)
	case "floor":
		o.CPU.Floor, err = ParseAmount(resize.CPU, text)
	case "memory-floor":
		o.Memory.Floor, err = ParseAmount(resize.Memory, text)
	case "min-history":
		o.MinHistory, err = time.ParseDuration(text)
	case "up":
		o.Up, err = strconv.ParseBool(text)
	case "limits":
		o.Limits, err = strconv.ParseBool(text)
	case "all":
		r.All, err = strconv.ParseBool(text)
	case "workloads":
		r.Workloads, err = strconv.ParseBool(text)
	case "workload":
		kind, name, ok := strings.Cut(text, "/")
		if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
			err = fmt.Errorf("%q is not KIND/NAME", text)
		}
		if i := slices.IndexFunc(Kinds, func(known string) bool { return strings.EqualFold(known, kind) }); i >= 0 {
			kind = Kinds[i]
		}
		r.Workload = cluster.Owner{Kind: kind, Name: name}
	case "resources":
		o.Resources = nil
		for word := range strings.SplitSeq(text, ",") {
			o.Resources = append(o.Resources, resize.Resource(strings.TrimSpace(word)))
		}
	default:
		return fmt.Errorf("unknown parameter %q", name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.query.Set(name, text)
	return nil
}

// Validate returns the first mistake in r.
func (r *Request) Validate() error {
	for _, name := range []string{"percentile", "headroom", "memory-percentile", "memory-headroom"} {
		if r.Options.Tool != nil && r.query.Has(name) {
			return fmt.Errorf("%s is of the estimator %s, and the estimator is %v: leave out one of them", name, estimate.OwnRule, r.Options.Tool)
		}
	}
	return r.Options.Validate()
}

// parseShare parses a share: "15%", or "0.15".
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a share: write 15%%", text)
	}
	if percent {
		share /= 100
	}
	return share, nil
}

// ParseAmount parses a quantity of a resource, "100m" or "64Mi", and rounds it up to millicores or
// bytes.
func ParseAmount(r resize.Resource, text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a quantity: write %v", text, resize.Quantity(r, map[resize.Resource]int64{resize.CPU: 100, resize.Memory: 64 << 20}[r]))
	}
	if r == resize.Memory {
		return q.Value(), nil
	}
	return q.MilliValue(), nil
}

// path returns the path below weirdev.Path.
func (r Request) path() []string {
	switch {
	case r.Pod != "":
		return []string{"namespaces", r.Namespace, Resource, r.Pod}
	case r.Namespace != "":
		return []string{"namespaces", r.Namespace, Resource}
	}
	return []string{Resource}
}

// String describes the request.
func (r Request) String() string {
	switch {
	case r.Pod != "":
		return fmt.Sprintf("the recommendation for pod %s/%s", r.Namespace, r.Pod)
	case r.Workload.Name != "":
		return fmt.Sprintf("the recommendation for %s %s/%s", r.Workload.Kind, r.Namespace, r.Workload.Name)
	case r.Namespace != "":
		return "recommendations in namespace " + r.Namespace
	}
	return Resource
}

// APIResources returns the resources for discovery.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{{Name: Resource, Kind: RecommendationKind, Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}}
}
