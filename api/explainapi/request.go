package explainapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// The paths.
const (
	clusterMissing   = "missing"
	namespaceMissing = "namespaces/{namespace}/missing"
	nodeExplanation  = "nodes/{name}/explanation"
	podExplanation   = "namespaces/{namespace}/pods/{name}/explanation"
)

var routes = weirdev.Routes{
	{Path: clusterMissing},
	{Path: namespaceMissing, Parameters: []string{"workload"}},
	{Path: nodeExplanation, Parameters: []string{"cgroup"}},
	{Path: podExplanation, Parameters: []string{"container"}},
}

// Paths returns the patterns of all that is served, in the form of http.ServeMux.
func Paths() []string { return routes.Patterns() }

// Request is a request about a node or one of its cgroups, a pod or one container of it. With Missing it is about
// everything missing in a namespace, or of one workload there, or in the cluster if there is no namespace.
type Request struct {
	Missing   bool
	Workload  cluster.Owner // the kind may be in lower case
	Node      metric.NodeName
	Namespace metric.Namespace
	Pod       metric.PodName
	Container string
	Cgroup    string // of the node; empty for the node itself
}

// ParseRequest reads the path and the query of r. An error in them is a *weirdev.Problem. Rights
// and the handler both use it, so that access is reviewed for exactly what is served.
func ParseRequest(r *http.Request) (Request, error) {
	parsed, err := routes.Parse(r)
	if err != nil {
		return Request{}, err
	}
	request := Request{
		Namespace: metric.Namespace(parsed.Names["namespace"]),
		Container: parsed.Values["container"], Cgroup: parsed.Values["cgroup"],
	}
	switch parsed.Path {
	case nodeExplanation:
		request.Node = metric.NodeName(parsed.Names["name"])
	case podExplanation:
		request.Pod = metric.PodName(parsed.Names["name"])
	default:
		request.Missing = true
	}
	if text, ok := parsed.Values["workload"]; ok {
		kind, name, _ := strings.Cut(text, "/")
		if kind == "" || name == "" {
			return Request{}, parsed.BadParameter("workload %q is not KIND/NAME: write deployment/web, for example", text)
		}
		request.Workload = cluster.Owner{Kind: kind, Name: name}
	}
	return request, nil
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
	if r.Workload != (cluster.Owner{}) {
		query = url.Values{"workload": {r.Workload.Kind + "/" + r.Workload.Name}}
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
	case r.Workload != (cluster.Owner{}):
		return fmt.Sprintf("%s/%s in namespace %s", r.Workload.Kind, r.Workload.Name, r.Namespace)
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
		{Name: "missing", Kind: reportKind, Namespaced: true, Verbs: metav1.Verbs{"list"}},
	}
}
