package ui

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"sync"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

//go:embed templates
var files embed.FS

// style is the one style sheet, and policy allows it by its hash and nothing else
// but the icon, which is written in the page.
var style, policy = func() (template.CSS, string) {
	css, err := files.ReadFile("templates/style.css")
	if err != nil {
		panic(err) // it is embedded
	}
	hash := sha256.Sum256(css)
	return template.CSS(css), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// views returns the template of each view: the frame with what is in it. They take some
// megabytes and time to parse, for which a weir has no use whose page nobody opens.
var views = sync.OnceValue(func() map[view]*template.Template {
	frame := template.Must(template.New("").Funcs(template.FuncMap{"prose": splitCode}).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	all := map[view]*template.Template{}
	for name, file := range map[view]string{
		overview: "overview", allNodes: "lists", allNamespaces: "lists", found: "lists", oneNode: "thing", onePod: "thing",
		oneContainer: "thing", oneNamespace: "namespace", allMissing: "missing", allSources: "sources", allAutoscalers: "autoscalers", oneAutoscaler: "autoscaler", oneEviction: "eviction", errorPage: "sorry",
	} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "templates/"+file+".html"))
	}
	return all
})

// retrySeconds is after how many seconds a page that has nothing to show yet is asked for
// again.
const retrySeconds = 5

// page is one answer in the making: what is asked for, what there is to say, and
// what the template reads.
type page struct {
	*explain.World
	opts       *Options
	query      query
	sampleAges map[metric.NodeName]time.Duration
	// What is worked out once for a page.
	excludedNodes map[metric.NodeName]bool
	allNodes      []listItem[knownNode]

	// Heading is what the page is about, Kind what that is and Where the node it
	// is on, and Path the pages above it.
	Heading string
	Kind    string
	Where   anchor
	Path    []anchor
	Body    any

	// The frame.
	Style          template.CSS
	Place, Version string
	Nav            []anchor
	Search         searchForm
	Read           shownTime // when the newest facts or numbers came
	Refresh        int       // in seconds; 0 for never
	Toggle         anchor    // turns that on or off
}

// anchor is a link.
type anchor struct {
	Text, Href string
	Here       bool // it is this page
}

// searchForm is the form that looks for names: in one list, or everywhere.
type searchForm struct {
	Label, Value string
	Keep         []keptParameter // what of the present question stays
}

type keptParameter struct{ Name, Value string }

// fill makes the body of the page that is asked for.
func (p *page) fill(ctx context.Context) error {
	switch p.query.view {
	case allAutoscalers:
		p.autoscalers()
		return nil
	case oneAutoscaler:
		return p.autoscaler()
	case oneEviction:
		return p.eviction(ctx)
	}
	if p.View == nil && p.query.view != allSources {
		return p.notReadYet()
	}
	switch p.query.view {
	case allNodes:
		p.Heading, p.Path = "Nodes", p.breadcrumbs()
		p.Body = []table{p.nodeTable(page100)}
	case allNamespaces:
		p.Heading, p.Path = "Namespaces", p.breadcrumbs()
		p.Body = []table{p.namespaceTable(page100)}
	case found:
		return p.search()
	case oneNode:
		return p.node()
	case oneNamespace:
		return p.namespace()
	case onePod:
		return p.pod()
	case oneContainer:
		return p.container()
	case allMissing:
		p.missing()
	case allSources:
		p.sources()
	default:
		p.overview()
	}
	return nil
}

// frame fills what stands around every body.
func (p *page) frame() {
	p.Style, p.Place, p.Version = style, p.opts.Title, p.opts.Version
	for _, n := range []struct {
		view view
		text string
	}{{overview, "Overview"}, {allMissing, "Missing"}, {allAutoscalers, "Autoscalers"}, {allSources, "Sources and sinks"}} {
		p.Nav = append(p.Nav, anchor{n.text, query{view: n.view, noRefresh: p.query.noRefresh}.link(), p.query.view == n.view})
	}
	p.Search = searchForm{Label: "Find a node, namespace, pod or cgroup", Value: p.query.filter}
	switch p.query.view {
	case oneNode:
		p.Search.Label = "Find on node " + printable(string(p.query.node))
		p.Search.Keep = append(p.Search.Keep, keptParameter{"node", string(p.query.node)})
	case oneNamespace:
		p.Search.Label = "Find in namespace " + printable(string(p.query.pod.Namespace))
		p.Search.Keep = append(p.Search.Keep, keptParameter{"namespace", string(p.query.pod.Namespace)})
	case allNodes, allNamespaces, allSources, allAutoscalers:
		p.Search.Label = "Find in these " + string(p.query.view)
		p.Search.Keep = append(p.Search.Keep, keptParameter{string(p.query.view), ""})
	}
	if p.query.list != "" {
		p.Search.Keep = append(p.Search.Keep, keptParameter{"list", p.query.list})
	}
	if p.query.sort != byWorst {
		p.Search.Keep = append(p.Search.Keep, keptParameter{"sort", string(p.query.sort)})
	}
	other := p.query
	other.noRefresh = !other.noRefresh
	if p.query.noRefresh {
		p.Search.Keep = append(p.Search.Keep, keptParameter{"refresh", "off"})
		p.Toggle = anchor{Text: "reload automatically", Href: other.link()}
	} else {
		if p.Refresh = p.refreshSeconds(); p.Refresh > 0 {
			p.Toggle = anchor{Text: "pause", Href: other.link()}
		}
	}
	p.Read = relativeTime(p.Now, p.Now)
}

// refreshSeconds is after how many seconds there may be something new: what the sources
// take, within what a person can bear.
func (p *page) refreshSeconds() int {
	if p.query.view == errorPage {
		if p.View == nil {
			return retrySeconds
		}
		return 0 // a mistake stays one
	}
	pace := time.Minute
	for i := range p.Sources {
		if s := &p.Sources[i]; s.Unread == nil && s.Interval > 0 {
			pace = min(pace, s.Interval)
		}
	}
	return int(max(pace, retrySeconds*time.Second) / time.Second)
}

// breadcrumbs are the pages above this one.
func (p *page) breadcrumbs(more ...anchor) []anchor {
	return append([]anchor{{Text: "Overview", Href: query{noRefresh: p.query.noRefresh}.link()}}, more...)
}

// linkTo returns the address of another view that is as still as this one.
func (p *page) linkTo(q query) string {
	q.noRefresh = p.query.noRefresh
	return q.link()
}

// errorBody is the body of a page that cannot be shown.
type errorBody struct {
	What, Todo string
	Reads      []sourceRead
}

func (p *page) showError(why *pageError) {
	p.Heading, p.Path = "Not found", p.breadcrumbs()
	a := errorBody{What: why.message, Todo: why.advice}
	switch why.status {
	case http.StatusServiceUnavailable:
		p.Heading, p.Path = "No data yet", nil
		// Errors name addresses: they are not for who may see one namespace.
		if p.query.pod.Namespace == "" {
			a.Reads = p.sourceReads("")
		}
	case http.StatusBadRequest:
		p.Heading = "Invalid address"
	case http.StatusInternalServerError:
		p.Heading = "Internal error"
	}
	p.query.view, p.Body = errorPage, a
}

// notReadYet is the problem of a page before the first round.
func (p *page) notReadYet() error {
	return &pageError{http.StatusServiceUnavailable, "weir has only just started: no source has been read yet.",
		"This page reloads every few seconds. If it does not change, the page of sources and sinks says why."}
}

// notFound is the problem of a page about something nobody knows.
func (p *page) notFound(what string) error {
	return &pageError{http.StatusNotFound, "weir knows no " + what + ".",
		"It may be deleted, or the name may be misspelled: search for a part of the name above. A new object is known after the next read."}
}
