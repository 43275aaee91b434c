package explainapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/metric"
)

// Paths returns the patterns of all that is served, in the form of http.ServeMux.
func Paths() []string {
	return []string{
		weirdev.Path + "namespaces/{namespace}/pods/{name}/explanation",
		weirdev.Path + "nodes/{name}/explanation",
		weirdev.Path + "missing",
		weirdev.Path + "namespaces/{namespace}/missing",
	}
}

// Request is a request about a node or one of its cgroups, a pod or one container of it. With Missing it is about
// everything missing in a namespace, or of one workload there, or in the cluster if there is no namespace.
type Request struct {
	Missing   bool
	Workload  Workload
	Node      metric.NodeName
	Namespace metric.Namespace
	Pod       metric.PodName
	Container string
	Cgroup    string // of the node; empty for the node itself
}

// Workload is the kind and the name of a workload. In a query it is KIND/NAME; the kind may be in lower
// case.
type Workload struct{ Kind, Name string }

func (w Workload) String() string { return w.Kind + "/" + w.Name }

// ParseRequest reads the path and the query of r. An error in them is a *weirdev.Problem. Rights
// and the handler both use it, so that access is reviewed for exactly what is served.
func ParseRequest(r *http.Request) (Request, error) {
	request, ok := parsePath(r.URL.EscapedPath())
	if !ok {
		return Request{}, &weirdev.Problem{Status: http.StatusNotFound, Message: "nothing is at " + strconv.Quote(r.URL.Path),
			Hint: "There are missing, nodes/NAME/explanation, namespaces/NAME/missing and namespaces/NAME/pods/NAME/explanation below " + weirdev.Path + "."}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch value := values[name]; {
		case weirdev.Moot(name):
		case (name != "container" || request.Pod == "") && (name != "cgroup" || request.Node == "") && (name != "workload" || !request.Missing || request.Namespace == ""):
			return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("unknown parameter %q", name),
				Hint: "Only container, of a pod, cgroup, of a node, and workload, of what is missing in a namespace, are known."}
		case len(value) > 1 || value[0] == "":
			return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("%s names one %[1]s", name), Hint: "Leave it out for the whole pod or node."}
		case name == "cgroup":
			request.Cgroup = value[0]
		case name == "workload":
			kind, of, ok := strings.Cut(value[0], "/")
			if request.Workload = (Workload{kind, of}); !ok || kind == "" || of == "" {
				return Request{}, &weirdev.Problem{Status: http.StatusBadRequest, Message: fmt.Sprintf("workload %q is no KIND/NAME", value[0]), Hint: "For instance deployment/web."}
			}
		default:
			request.Container = value[0]
		}
	}
	return request, nil
}

// parsePath reads an escaped path.
func parsePath(escaped string) (r Request, ok bool) {
	parts, names, ok := weirdev.Parts(escaped)
	switch {
	case !ok:
	case len(parts) == 1 && parts[0] == "missing":
		return Request{Missing: true}, true
	case len(parts) == 3 && parts[0] == "namespaces" && parts[2] == "missing":
		return Request{Missing: true, Namespace: metric.Namespace(names[1])}, true
	case len(parts) == 3 && parts[0] == "nodes" && parts[2] == "explanation":
		return Request{Node: metric.NodeName(names[1])}, true
	case len(parts) == 5 && parts[0] == "namespaces" && parts[2] == "pods" && parts[4] == "explanation":
		return Request{Namespace: metric.Namespace(names[1]), Pod: metric.PodName(names[3])}, true
	}
	return Request{}, false
}

// target returns the path below Path and the query for r. It is the inverse of ParseRequest.
func (r Request) target() (path []string, query url.Values) {
	switch {
	case r.Missing && r.Namespace == "":
		path = []string{"missing"}
	case r.Missing:
		path = []string{"namespaces", string(r.Namespace), "missing"}
	case r.Pod == "":
		path = []string{"nodes", string(r.Node), "explanation"}
	default:
		path = []string{"namespaces", string(r.Namespace), "pods", string(r.Pod), "explanation"}
	}
	if r.Workload != (Workload{}) {
		query = url.Values{"workload": {r.Workload.String()}}
	}
	if r.Cgroup != "" {
		query = url.Values{"cgroup": {r.Cgroup}}
	}
	if r.Container != "" {
		query = url.Values{"container": {r.Container}}
	}
	return path, query
}

// String describes the request.
func (r Request) String() string {
	switch {
	case r.Missing && r.Namespace == "":
		return "what is missing"
	case r.Workload != (Workload{}):
		return fmt.Sprintf("%s in namespace %s", r.Workload, r.Namespace)
	case r.Missing:
		return "what is missing in namespace " + string(r.Namespace)
	case r.Cgroup != "":
		return fmt.Sprintf("cgroup %s on node %s", r.Cgroup, r.Node)
	case r.Pod == "":
		return "node " + string(r.Node)
	case r.Container == "":
		return fmt.Sprintf("pod %s/%s", r.Namespace, r.Pod)
	}
	return fmt.Sprintf("container %s of pod %s/%s", r.Container, r.Namespace, r.Pod)
}

// APIResources returns the resources for discovery.
func APIResources() []metav1.APIResource {
	return []metav1.APIResource{
		{Name: "nodes/explanation", Kind: "NodeExplanation", Verbs: metav1.Verbs{"get"}},
		{Name: "pods/explanation", Kind: "PodExplanation", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "missing", Kind: "MissingReport", Namespaced: true, Verbs: metav1.Verbs{"list"}},
	}
}
