package ui_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/test/samplecluster"
)

// FuzzQuery requests any view. The answer must always be a well-formed page of limited size. It
// must not contain unescaped text of the query, and must show no more than the reader of Rights may see.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"", "node=n1", "namespace=shop&q=web&sort=cpu&from=3", "pod=shop/web-1", "container=shop/web-1/app", "missing&from=99999999999999999999",
		"sources&refresh=off", "nodes&from=-1", "q=%3Cscript%3Ealert(1)%3C/script%3E", "node=%22%3E%3Cimg+src=x%3E&list=pods", "pod=../..", "pod=%00/%ff",
		"node=n1&node=n2", "node=javascript:alert(1)", "q=&sort=name", "list=cgroups&node=n1", "%=;&&==", "pod=//evil.example/x", "q=\u202e", "from=2&q=e", "q=%ff", "workload=shop/StatefulSet/web&q=1",
	} {
		f.Add(s)
	}
	h := page(samplecluster.Failing(f))
	script := ownScript(f)
	f.Fuzz(func(t *testing.T, query string) {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/ui/", RawQuery: query}, Header: http.Header{}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body := w.Body.String()
		switch w.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
		default:
			t.Fatalf("?%s: %d", query, w.Code)
		}
		pageText, err := text(body)
		if err != nil {
			t.Fatalf("?%s is not well formed: %v\n%s", query, err, body)
		}
		if !strings.Contains(pageText, "# ") || len(body) > 300_000 {
			t.Fatalf("?%s: %d bytes without a heading, or too many", query, len(body))
		}
		body = strings.Replace(body, "<script>"+script, "", 1)
		for _, no := range []string{"<script", "<img", "javascript:", "\u202e", `href="/`, `href="http`} {
			if strings.Contains(body, no) && no != "javascript:" || strings.Contains(body, `href="`+no) {
				t.Fatalf("?%s: the page has %q in it:\n%s", query, no, pageText)
			}
		}
		needed := ui.Rights(r)
		if w.Code == http.StatusOK && len(needed) == 0 {
			t.Fatalf("?%s is answered, and needs no rights", query)
		}
		mayRead := slices.Contains(needed, rights.ListPods("")) || slices.Contains(needed, rights.ListPods("bank"))
		if !mayRead && strings.Contains(pageText, "vault") && !strings.Contains(query, "vault") {
			t.Fatalf("?%s shows another namespace, and needs only %v", query, needed)
		}
	})
}
