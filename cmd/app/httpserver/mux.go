package httpserver

import (
	"html/template"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
)

// Mux routes requests and keeps a list of its paths for the index.
type Mux struct {
	title     string
	mux       *http.ServeMux
	endpoints []endpoint
}

type endpoint struct{ Path, Does string }

// NewMux returns a Mux with an index page at /.
func NewMux(title string) *Mux {
	m := &Mux{title: title, mux: http.NewServeMux()}
	m.mux.HandleFunc("GET /{$}", m.index)
	return m
}

// Handle serves path, and everything below it if path ends in a slash. does describes it in a few
// words. If it is empty, the index does not list the path.
func (m *Mux) Handle(path, purpose string, h http.Handler) {
	m.mux.Handle(path, h)
	if purpose != "" {
		m.List(path, purpose)
	}
}

// List adds a path to the index that another path already serves.
func (m *Mux) List(path, purpose string) {
	m.endpoints = append(m.endpoints, endpoint{path, purpose})
	slices.SortFunc(m.endpoints, func(a, b endpoint) int { return strings.Compare(a.Path, b.Path) })
}

// HandlePprof serves Go's profiles below /debug/pprof/.
func (m *Mux) HandlePprof() {
	m.Handle("/debug/pprof/", "profiles of this process", http.HandlerFunc(pprof.Index))
	m.Handle("/debug/pprof/cmdline", "", http.HandlerFunc(pprof.Cmdline))
	m.Handle("/debug/pprof/profile", "", http.HandlerFunc(pprof.Profile))
	m.Handle("/debug/pprof/symbol", "", http.HandlerFunc(pprof.Symbol))
	m.Handle("/debug/pprof/trace", "", http.HandlerFunc(pprof.Trace))
}

// ServeHTTP answers a request.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	m.mux.ServeHTTP(w, r)
}

var page = template.Must(template.New("index").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
body { font: 1rem/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 46rem; padding: 0 1rem }
td { padding: .1rem 1.5rem .1rem 0; vertical-align: top }
</style>
<h1>{{.Title}}</h1>
<table>
{{range .Endpoints}}<tr><td><a href="{{.Path}}">{{.Path}}</a><td>{{.Does}}
{{end}}</table>
`))

func (m *Mux) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	// A write fails only when the client has gone.
	_ = page.Execute(w, struct {
		Title     string
		Endpoints []endpoint
	}{m.title, m.endpoints})
}
