package ui

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/eventlog"
	"github.com/weir-metrics/weir/metric"
)

// view is the kind of a page.
type view string

// The views.
const (
	overview       view = "overview"
	allNodes       view = "nodes"
	allNamespaces  view = "namespaces"
	allWorkloads   view = "workloads"
	allPods        view = "pods"
	oneNode        view = "node"
	oneNamespace   view = "namespace"
	oneWorkload    view = "workload"
	onePod         view = "pod"
	oneContainer   view = "container"
	allMissing     view = "missing"
	allSources     view = "sources"
	allAutoscalers view = "autoscalers"
	oneAutoscaler  view = "autoscaler"
	oneEviction    view = "eviction"
	oneEvents      view = "events"
	found          view = "search"
	errorPage      view = "sorry"
)

// sorting is the order of a list.
type sorting string

// The orders. The default is the worst first, then those that use the largest share of their limit.
const (
	byWorst       sorting = ""
	byCPU         sorting = "cpu"
	byMemory      sorting = "memory"
	byName        sorting = "name"
	byPods        sorting = "pods"         // how many pods it has
	byCPUShare    sorting = "cpu-share"    // of what the column of shares shows
	byMemoryShare sorting = "memory-share" // likewise
)

// query is a parsed request.
type query struct {
	view           view
	node           metric.NodeName
	pod            metric.PodRef // only the namespace is set if the query is about a namespace
	container      string
	workload       cluster.Owner   // pod has its namespace
	autoscalerKind string          // pod has the namespace and name of the autoscaler
	events         eventlog.Object // the object of the Events
	list           string          // "pods" or "cgroups" if the page has only one list of a node, "workloads" of a namespace
	filter         string
	labels         string // a label selector for pods
	reason         string // why pods have no number, or a doubtful one
	sort           sorting
	from           int
	span           string // of the charts, by its name; empty for the default
	noRefresh      bool   // the page does not reload
}

// maxName limits the length in bytes of a value in a query.
const maxName = 1024

// parse parses a request.
func parse(u *url.URL) (query, error) {
	q := query{view: errorPage}
	// Links are only queries, so that they work below any path. The API server's proxy does
	// not allow redirects.
	if !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/ui") && u.Path != "/" {
		return q, &pageError{http.StatusNotFound, "There is nothing at this address.", "The page is at /ui/, and a query selects what it shows: /ui/?sources, for example."}
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return q, badQuery("the query is not encoded correctly")
	}
	parsed := query{view: overview}
	chosen := "" // the parameter that selected the view
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name][0]
		if err := checkParameter(name, values[name]); err != nil {
			return q, err
		}
		selected, err := parsed.set(name, value)
		if err != nil {
			return q, err
		}
		if selected != "" && chosen != "" {
			return q, badQuery(chosen + " and " + name + " select different pages: use one of them")
		}
		if selected != "" {
			parsed.view, chosen = selected, name
		}
	}
	if parsed.view == overview && parsed.filter != "" {
		parsed.view = found
	}
	return parsed, nil
}

// checkParameter returns an error for a parameter that is given twice or cannot be shown.
func checkParameter(name string, values []string) error {
	switch {
	case len(name) > 20 || printable(name) != name:
		return badQuery("the query has an unknown parameter")
	case len(values) > 1:
		return badQuery(name + " is given twice")
	case len(values[0]) > maxName || printable(values[0]) != values[0]:
		return badQuery("the value of " + name + " is not a valid name")
	}
	return nil
}

// set reads one parameter. It returns the view that the parameter selects, or "" if the parameter
// only adds to a view.
func (q *query) set(name, value string) (view, error) {
	switch name {
	case "node":
		q.node = metric.NodeName(value)
		return oneNode, require(value != "", "node=NAME")
	case "eviction":
		q.node = metric.NodeName(value)
		return oneEviction, require(value != "", "eviction=NODE")
	case "events":
		var ok bool
		q.events, ok = parseObject(value)
		return oneEvents, require(ok, "events=KIND/NAMESPACE/NAME")
	case "namespace":
		q.pod.Namespace = metric.Namespace(value)
		return oneNamespace, require(value != "", "namespace=NAME")
	case "pod", "container", "workload", "hpa", "autoscaler":
		return q.setObject(name, strings.Split(value, "/"))
	case "nodes", "namespaces", "workloads", "pods", "missing", "sources", "autoscalers":
		return view(name), require(value == "", name+" alone")
	}
	return "", q.setOption(name, value)
}

// setObject reads the parameter of an object in a namespace, split at its slashes.
func (q *query) setObject(name string, parts []string) (view, error) {
	if name == "container" && len(parts) == 3 || name != "workload" && len(parts) == 2 {
		q.pod = metric.PodRef{Namespace: metric.Namespace(parts[0]), Name: metric.PodName(parts[1])}
	}
	switch name {
	case "pod":
		// A pod without a known name has an empty namespace and its UID as the name.
		return onePod, require(q.pod.Name != "", "pod=NAMESPACE/NAME")
	case "container":
		q.container = parts[len(parts)-1]
		return oneContainer, require(len(parts) == 3 && q.pod.Name != "" && q.container != "", "container=NAMESPACE/POD/NAME")
	case "workload":
		if len(parts) == 3 {
			q.pod.Namespace, q.workload = metric.Namespace(parts[0]), cluster.Owner{Kind: parts[1], Name: parts[2]}
		}
		return oneWorkload, require(q.pod.Namespace != "" && q.workload.Kind != "" && q.workload.Name != "", "workload=NAMESPACE/KIND/NAME")
	}
	q.autoscalerKind = autoscalerKinds[name]
	return oneAutoscaler, require(q.pod.Namespace != "" && q.pod.Name != "", name+"=NAMESPACE/NAME")
}

// setOption reads one parameter that only adds to a view.
func (q *query) setOption(name, value string) error {
	switch name {
	case "q":
		q.filter = strings.TrimSpace(value)
		return nil
	case "label":
		q.labels = strings.TrimSpace(value)
		_, err := labels.Parse(q.labels)
		return require(err == nil, "label=app=web, for example, or label=tier in (front,back)")
	case "reason":
		q.reason = value
		_, ok := metric.ParseReason(value)
		return require(ok || value == "", "reason=NodeTimeout, for example: docs/reasons.md has all reasons")
	case "sort":
		q.sort = sorting(value)
		return require(orders[q.sort] != nil, "sort=cpu, sort=memory or sort=name")
	case "list":
		q.list = value
		return require(slices.Contains([]string{"pods", "cgroups", "workloads"}, value), "list=pods, list=cgroups or list=workloads")
	case "from":
		n, err := strconv.Atoi(value)
		q.from = n
		return require(err == nil && n >= 0, "from=NUMBER")
	case "span":
		if value != spans[0].name {
			q.span = value
		}
		return require(spanNamed(value) > 0, "span=15m, 1h, 6h, 1d or 7d")
	case "refresh":
		q.noRefresh = value == "off"
		return require(value == "off", "refresh=off")
	}
	return badQuery("there is no " + strconv.Quote(name))
}

func require(ok bool, how string) error {
	if ok {
		return nil
	}
	return badQuery("write " + how)
}

func badQuery(reason string) error {
	return &pageError{http.StatusBadRequest, "This address is not valid: " + reason + ".",
		"Go back, start at the overview, or look for a name above."}
}

// viewParameter returns the parameter that selects the view of q. It has no name if none does.
func (q query) viewParameter() keptParameter {
	switch q.view {
	case oneNode:
		return keptParameter{"node", string(q.node)}
	case oneEviction:
		return keptParameter{"eviction", string(q.node)}
	case oneEvents:
		return keptParameter{"events", q.events.Kind + "/" + q.events.Namespace + "/" + q.events.Name}
	case oneNamespace:
		return keptParameter{"namespace", string(q.pod.Namespace)}
	case oneWorkload:
		return keptParameter{"workload", string(q.pod.Namespace) + "/" + q.workload.Kind + "/" + q.workload.Name}
	case onePod:
		return keptParameter{"pod", q.pod.String()}
	case oneContainer:
		return keptParameter{"container", q.pod.String() + "/" + q.container}
	case oneAutoscaler:
		return keptParameter{strings.ToLower(shortKind(q.autoscalerKind)), q.pod.String()}
	case allNodes, allNamespaces, allWorkloads, allPods, allMissing, allSources, allAutoscalers:
		return keptParameter{string(q.view), ""}
	}
	return keptParameter{}
}

// link returns the address of the page of q, relative to any other page.
func (q query) link() string {
	var b strings.Builder
	add := func(name, value string) {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(name)
		if value != "" {
			// A query may contain a slash, and shop/web is easier to read.
			b.WriteString("=" + strings.ReplaceAll(url.QueryEscape(value), "%2F", "/"))
		}
	}
	if view := q.viewParameter(); view.Name != "" {
		add(view.Name, view.Value)
	}
	for _, more := range [...]keptParameter{{"list", q.list}, {"q", q.filter}, {"label", q.labels}, {"reason", q.reason}, {"sort", string(q.sort)}, {"span", q.span}} {
		if more.Value != "" {
			add(more.Name, more.Value)
		}
	}
	if q.from > 0 {
		add("from", strconv.Itoa(q.from))
	}
	if q.noRefresh {
		add("refresh", "off")
	}
	return "?" + b.String()
}
