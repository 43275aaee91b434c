package ui

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

//go:embed templates
var files embed.FS

// style is the style sheet, and script loads the newest state of an open page. policy is the
// Content-Security-Policy; it allows both by their hashes, requests to this server, data: images for
// the icon, and nothing else.
var style, script, policy = func() (template.CSS, template.JS, string) {
	read := func(name string) (text, hash string) {
		body, err := files.ReadFile("templates/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		sum := sha256.Sum256(body)
		return string(body), "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	css, cssHash := read("style.css")
	js, jsHash := read("page.js")
	return template.CSS(css), template.JS(js), "default-src 'none'; style-src " + cssHash + "; script-src " + jsHash +
		"; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}()

// templates returns the template of each kind of body inside the frame. Parsing takes time and some
// megabytes, so it happens at the first request.
var templates = sync.OnceValue(func() map[string]*template.Template {
	frame := template.Must(template.New("").Funcs(template.FuncMap{"prose": splitCode, "printable": printable}).
		ParseFS(files, "templates/frame.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"lists", "entity", "report", "sources", "autoscalers", "autoscaler", "eviction", "events", "sorry"} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return all
})

// retrySeconds is the reload interval of a page without data.
const retrySeconds = 5

// page is the data of one answer: the query, the state of weir, and the fields that the
// template reads.
type page struct {
	*explain.Explainer
	opts       *Options
	query      query
	sampleAges map[metric.NodeName]time.Duration
	// Caches for one page.
	excludedNodes map[metric.NodeName]bool
	allNodes      []listItem
	servedPods    *servedCounts
	scalers       map[string]anchor

	// Heading is the title, Kind the kind of the object, Where its node, and Path the links to the
	// pages above it.
	Heading string
	Kind    string
	Where   anchor
	Path    []anchor
	// Problems is how many things are wrong, of those that the page shows. The title begins with it.
	Problems int
	// Body is drawn by Template.
	Template string
	Body     any

	// Fields of the frame.
	Style   template.CSS
	Script  template.JS
	Version string
	Nav     []anchor
	Search  searchForm
	Read    shownTime // when the page was made
	Refresh int       // in seconds; 0 for no reload
	Toggle  anchor    // turns the refresh on or off
}

// anchor is a link.
type anchor struct {
	Text, Href string
	Here       bool // it links to this page
}

// searchForm is the form that searches names in one list or everywhere.
type searchForm struct {
	Label, Value string
	Keep         []keptParameter // parameters of the current query that stay
}

// keptParameter is a parameter of a query.
type keptParameter struct{ Name, Value string }

// fill makes the body of the requested page.
func (p *page) fill(ctx context.Context) error {
	withoutRound := []view{allSources, allAutoscalers, oneAutoscaler, oneEviction, oneEvents}
	if p.View == nil && !slices.Contains(withoutRound, p.query.view) {
		return &pageError{http.StatusServiceUnavailable, "weir has only just started: no source has been read yet.",
			"This page reloads every few seconds. If it does not change, the page of sources and sinks shows why."}
	}
	p.Path = p.breadcrumbs()
	if p.query.view == oneEviction {
		return p.eviction(ctx)
	}
	return bodies[p.query.view](p)
}

// bodies fill the body of each view but oneEviction, which asks an agent.
var bodies = map[view]func(*page) error{
	overview:       (*page).overview,
	allNodes:       listPage("Nodes", func(p *page) table { return p.nodeTable(page100) }),
	allNamespaces:  listPage("Namespaces", func(p *page) table { return p.namespaceTable(page100) }),
	allWorkloads:   listPage("Workloads", func(p *page) table { return p.workloadTable(p.pods("", ""), page100, query{view: allWorkloads}) }),
	allPods:        listPage("Pods", func(p *page) table { return p.podTable(p.pods("", ""), page100, query{view: allPods}, true) }),
	allMissing:     (*page).missing,
	allSources:     (*page).sources,
	allAutoscalers: (*page).autoscalers,
	oneNode:        (*page).node,
	oneNamespace:   (*page).namespace,
	oneWorkload:    (*page).workload,
	onePod:         (*page).pod,
	oneContainer:   (*page).container,
	oneAutoscaler:  (*page).autoscaler,
	oneEvents:      (*page).events,
	found:          (*page).search,
}

// show sets the title and the body of the page.
func (p *page) show(heading, template string, body any) {
	p.Heading, p.Template, p.Body = heading, template, body
}

// listPage returns what fills a page with one list, with its number of items beside the heading.
func listPage(heading string, list func(*page) table) func(*page) error {
	return func(p *page) error {
		t := list(p)
		p.Problems, p.Kind, t.Title = t.Missing, t.Count(), ""
		p.show(heading, "lists", []table{t})
		return nil
	}
}

// keptParameters returns the parameters that a form keeps, whatever it changes.
func (p *page) keptParameters() (kept []keptParameter) {
	for _, k := range []keptParameter{{"list", p.query.list}, {"sort", string(p.query.sort)}, {"span", p.query.span}} {
		if k.Value != "" {
			kept = append(kept, k)
		}
	}
	if p.query.noRefresh {
		kept = append(kept, keptParameter{"refresh", "off"})
	}
	return kept
}

// frame fills the fields of the frame.
func (p *page) frame() {
	p.Style, p.Script, p.Version = style, script, p.opts.Version
	for _, n := range []struct {
		view view
		text string
	}{{overview, "Overview"}, {allWorkloads, "Workloads"}, {allPods, "Pods"}, {allMissing, "Missing"}, {allAutoscalers, "Autoscalers"}, {allSources, "Sources and sinks"}} {
		p.Nav = append(p.Nav, anchor{n.text, p.linkTo(query{view: n.view}), p.query.view == n.view})
	}
	p.Search = searchForm{Label: "Find a node, namespace, workload, pod or cgroup", Value: p.query.filter, Keep: []keptParameter{p.query.viewParameter()}}
	switch p.query.view {
	case oneNode:
		p.Search.Label = "Find on node " + printable(string(p.query.node))
	case oneNamespace:
		p.Search.Label = "Find in namespace " + printable(string(p.query.pod.Namespace))
	case allNodes, allNamespaces, allWorkloads, allPods, allSources, allAutoscalers:
		p.Search.Label = "Find in these " + string(p.query.view)
	default:
		p.Search.Keep = nil
	}
	p.Search.Keep = append(p.Search.Keep, p.keptParameters()...)
	for _, k := range []keptParameter{{"label", p.query.labels}, {"reason", p.query.reason}} {
		if k.Value != "" {
			p.Search.Keep = append(p.Search.Keep, k)
		}
	}
	other := p.query
	other.noRefresh = !other.noRefresh
	if p.query.noRefresh {
		p.Toggle = anchor{Text: "reload automatically", Href: other.link()}
	} else if p.Refresh = p.refreshSeconds(); p.Refresh > 0 {
		p.Toggle = anchor{Text: "pause", Href: other.link()}
	}
	p.Read = relativeTime(p.Now, p.Now)
}

// refreshSeconds returns the reload interval: the shortest interval of a source, limited to between
// retrySeconds and a minute. It is 0 for an error page that a reload cannot change.
func (p *page) refreshSeconds() int {
	if p.query.view == errorPage {
		if p.View == nil {
			return retrySeconds
		}
		return 0 // a reload cannot change it
	}
	pace := time.Minute
	for i := range p.Sources {
		if s := &p.Sources[i]; s.Unread == nil && s.Interval > 0 {
			pace = min(pace, s.Interval)
		}
	}
	return int(max(pace, retrySeconds*time.Second) / time.Second)
}

// breadcrumbs returns the links to the pages above this one.
func (p *page) breadcrumbs(more ...anchor) []anchor {
	return append([]anchor{{Text: "Overview", Href: p.linkTo(query{})}}, more...)
}

// linkTo returns the address of another view and keeps the refresh setting and the span of charts.
func (p *page) linkTo(q query) string {
	q.noRefresh, q.span = p.query.noRefresh, p.query.span
	return q.link()
}

// errorBody is the body of a page that cannot be shown.
type errorBody struct {
	What, Todo string
	Reads      []sourceRead
}

func (p *page) showError(reason *pageError) {
	a := errorBody{What: reason.message, Todo: reason.advice}
	heading := "Not found"
	p.Path = p.breadcrumbs()
	switch reason.status {
	case http.StatusServiceUnavailable:
		heading, p.Path = "No data yet", nil
		// Errors contain addresses. A reader of one namespace must not see them.
		if p.query.pod.Namespace == "" {
			a.Reads = p.sourceReads("")
		}
	case http.StatusBadRequest:
		heading = "Invalid address"
	}
	p.query.view = errorPage
	p.show(heading, "sorry", a)
}

// notFound returns the error for an unknown object.
func (p *page) notFound(what string) error {
	return &pageError{http.StatusNotFound, "weir does not know " + what + ".",
		"It may be deleted, or the name may be misspelled: search for a part of the name above. A new object is known after the next read."}
}
