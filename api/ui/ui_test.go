package ui_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/api/rights"
	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/samplecluster"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// page returns the page of a cluster with two sinks, one of which fails.
func page(w *samplecluster.Cluster) *ui.Handler {
	return ui.New(ui.Options{Explainer: w.Explainer, Points: w.Points, Version: "v0.4.0", Sinks: func() []ui.SinkState {
		return []ui.SinkState{
			{Name: "memory", LastSuccess: samplecluster.Noon.Add(-3 * time.Second), Took: 400 * time.Microsecond},
			{Name: "log", LastSuccess: samplecluster.Noon.Add(-2 * time.Minute), Err: errors.New("write /var/log/weir: no space left on device"), Queued: 12, Dropped: 3456},
		}
	}})
}

// get requests a view.
func get(t testing.TB, h http.Handler, query string) (status int, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// The values of CPU in a column, on a card and in a chart have one unit.
func TestOneUnitOfCPU(t *testing.T) {
	w := samplecluster.New(t)
	w.Knows(cluster.FactsChange{Nodes: []*cluster.Node{w.Node("n1", 24, 64).Itself(12.7, 8).Facts(true), w.Node("n2", 24, 64).Itself(6.058, 8).Facts(true)}})
	h := page(w.Run())
	milli := regexp.MustCompile(`\b[0-9,.]+m\b`)
	for query, want := range map[string]string{"": "of 47.8 allocatable", "?nodes": "| 7.27 |", "?node=n2": "of 23.9 allocatable"} {
		_, _, body := get(t, h, query)
		got, err := text(body)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: the page does not have %q:\n%s", query, want, got)
		}
		_, got, _ = strings.Cut(strings.ReplaceAll(got, "last 15m", ""), "\n# ") // a span of time
		_, got, _ = strings.Cut(got, "| ")                                       // the sentence has the words of explain
		if found := milli.FindAllString(got, -1); len(found) > 0 {
			t.Errorf("%q: beside values in cores there are %q, want all in cores:\n%s", query, found, got)
		}
	}
}

// A slow node and one whose numbers are about to be withdrawn are marked in the list of nodes and on the
// overview.
func TestNodesAtRisk(t *testing.T) {
	w := samplecluster.New(t)
	slow, gone := w.Node("slow", 4, 16).Itself(1, 4), w.Node("gone", 4, 16).Itself(1, 4)
	slow.Took = 7 * time.Second
	gone.Fails = func(at time.Time) error {
		if at.Before(samplecluster.Noon.Add(-30 * time.Second)) {
			return nil
		}
		return &metric.ReadError{Reason: metric.NodeTimeout, Err: errors.New("deadline")}
	}
	w.Knows(cluster.FactsChange{Nodes: []*cluster.Node{slow.Facts(true), gone.Facts(true), w.Node("fine", 4, 16).Itself(1, 4).Facts(true)}})
	h := page(w.Run())
	for query, want := range map[string][]string{
		"":         {"at risk [gone](?node=gone) : no new reading for ", "(NodeTimeout), its numbers are withdrawn in ", "; [slow](?node=slow) : the last read took 7s"},
		"?missing": {"at risk [gone](?node=gone) : no new reading for "},
		"?nodes":   {"| [gone](?node=gone) | stale |", "| no new reading for ", "| [slow](?node=slow) | slow |", "| the last read took 7s"},
	} {
		_, _, body := get(t, h, query)
		got, err := text(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("%q: the page does not have %q:\n%s", query, want, got)
			}
		}
		if strings.Contains(got, "[fine](?node=fine) :") {
			t.Errorf("%q: node fine is at risk, want only slow and gone:\n%s", query, got)
		}
	}
}

// TestViews compares the text of each view with testdata: for a cluster with failures, one without,
// a machine without a cluster, and before the first read.
func TestViews(t *testing.T) {
	sick, fit, lone, none := page(samplecluster.Failing(t)), page(samplecluster.Healthy(t)), page(samplecluster.SingleMachine(t)), page(samplecluster.New(t))
	remembers := ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Points: samplecluster.Failing(t).Points, History: 24 * time.Hour})
	scale, guard := scaled(samplecluster.Failing(t), decisions()), guarded(t)
	for _, test := range []struct {
		file   string
		page   *ui.Handler
		query  string
		status int
	}{
		{"overview", sick, "", 200},
		{"nodes_by_memory", sick, "?nodes&sort=memory", 200},
		{"namespaces", sick, "?namespaces&refresh=off", 200},
		{"pods", sick, "?pods", 200},
		{"pods_of_a_label", sick, "?pods&label=app+in+(web,cart)&sort=memory-share&refresh=off", 200},
		{"pods_of_a_reason", sick, "?namespace=shop&reason=NodeTimeout", 200},
		{"bad_label", sick, "?pods&label=%3D%3D", 400},
		{"node", sick, "?node=n1", 200},
		{"node_six_hours", remembers, "?node=n1&span=6h", 200},
		{"node_failing", sick, "?node=n3", 200},
		{"node_left_out", sick, "?node=arm-1", 200},
		{"node_pods", sick, "?node=n1&list=pods&q=web", 200},
		{"namespace", sick, "?namespace=shop", 200},
		{"workloads", sick, "?workloads&sort=cpu", 200},
		{"workloads_of_a_namespace", sick, "?namespace=shop&list=workloads", 200},
		{"workload", scale, "?workload=shop/statefulset/web", 200},
		{"pod", sick, "?pod=shop/web-1", 200},
		{"pod_ambiguous", sick, "?pod=bank/vault-0", 200},
		{"pod_of_failing_node", sick, "?pod=shop/web-4", 200},
		{"pod_crashing", sick, "?pod=shop/mailer-6f9c", 200},
		{"container", sick, "?container=shop/web-1/app", 200},
		{"missing", sick, "?missing", 200},
		{"sources", sick, "?sources", 200},
		{"search", sick, "?q=WEB", 200},
		{"search_for_nothing", sick, "?q=xyzzy", 404},
		{"no_pod", sick, "?pod=shop/nobody", 404},
		{"no_node", sick, "?node=nowhere", 404},
		{"no_namespace", sick, "?namespace=nowhere", 404},
		{"no_workload", sick, "?workload=shop/Deployment/web", 404},
		{"two_views", sick, "?node=n1&pod=shop/web-1", 400},
		{"no_view", sick, "?bogus", 400},
		{"well", fit, "", 200},
		{"well_missing", fit, "?missing", 200},
		{"machine", lone, "", 200},
		{"machine_by_name", lone, "?sort=name", 200},
		{"autoscalers", scale, "?autoscalers", 200},
		{"autoscalers_of_a_name", scale, "?autoscalers&q=STILL", 200},
		{"autoscalers_unread", ui.New(ui.Options{
			Explainer: samplecluster.Failing(t).Explainer, Autoscalers: func() []decisionreport.DecisionSummary { return nil },
			AutoscalersUnread: func() string { return "HorizontalPodAutoscalers cannot be read: weir needs the right list on it." },
		}), "?autoscalers", 200},
		{"autoscalers_off", sick, "?autoscalers", 200},
		{"hpa", scale, "?hpa=shop/web", 200},
		{"hpa_unknown", scale, "?hpa=shop/lost", 200},
		{"autoscaler", scale, "?autoscaler=shop/still", 200},
		{"no_hpa", scale, "?hpa=shop/nobody", 404},
		{"eviction", guard, "?eviction=n1", 200},
		{"eviction_starting", guard, "?eviction=n2", 200},
		{"eviction_no_agent", guard, "?eviction=n3", 502},
		{"eviction_failing", guard, "?eviction=n4", 502},
		{"eviction_no_node", guard, "?eviction=nowhere", 404},
		{"eviction_off", sick, "?eviction=n1", 404},
		{"nothing_yet", none, "", 503},
		{"nothing_yet_sources", none, "?sources", 200},
	} {
		t.Run(test.file, func(t *testing.T) {
			status, _, body := get(t, test.page, test.query)
			if status != test.status {
				t.Errorf("%s: got %d, want %d", test.query, status, test.status)
			}
			got, err := text(body)
			if err != nil {
				t.Fatalf("%s is not well formed: %v\n%s", test.query, err, body)
			}
			got = test.query + "\n\n" + got
			file := filepath.Join("testdata", test.file+".txt")
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; -rewrite accepts it):\n%s", test.query, diff)
			}
		})
	}
}

// Pages are complete: they load nothing from elsewhere, their policy forbids it, and all links are
// queries of this page.
func TestPagesStandAlone(t *testing.T) {
	h := page(samplecluster.Failing(t))
	seen := map[string]bool{}
	for queue := []string{"?"}; len(queue) > 0; queue = queue[1:] {
		query := queue[0]
		if seen[query] {
			continue
		}
		seen[query] = true
		status, header, body := get(t, h, query)
		if status != http.StatusOK {
			t.Errorf("%s, to which a page links: %d\n%s", query, status, body)
		}
		style, script, within := "", "", ""
		err := walk(body, func(token xml.Token) {
			switch e := token.(type) {
			case xml.StartElement:
				within = e.Name.Local
				if e.Name.Local == "iframe" || e.Name.Local == "img" {
					t.Errorf("%s has an element %s", query, e.Name.Local)
				}
				for _, a := range e.Attr {
					switch name := a.Name.Local; {
					case name == "href" && e.Name.Local == "link" && strings.HasPrefix(a.Value, "data:image/svg+xml,"):
					case name == "href" && a.Value == "#main":
					case name == "href" && strings.HasPrefix(a.Value, "?"):
						queue = append(queue, a.Value)
					case name == "href", name == "src", name == "action", name == "style", name == "srcset", strings.HasPrefix(name, "on"):
						t.Errorf("%s: <%s %s=%q>", query, e.Name.Local, name, a.Value)
					case strings.Contains(a.Value, "://") && name != "content" && !strings.Contains(a.Value, "192.0.2."):
						t.Errorf("%s names an address: <%s %s=%q>", query, e.Name.Local, name, a.Value)
					}
				}
			case xml.EndElement:
				within = ""
			case xml.CharData:
				switch within {
				case "style":
					style += string(e)
				case "script":
					script += string(e)
				}
			}
		})
		if err != nil {
			t.Fatalf("%s is not well formed: %v", query, err)
		}
		if strings.Contains(style, "url(") || strings.Contains(style, "@import") {
			t.Errorf("%s: the style asks for something else", query)
		}
		if script != "" && script != ownScript(t) {
			t.Errorf("%s has a script that is not weir's own:\n%s", query, script)
		}
		want := "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(ownScript(t)) +
			"; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
		if got := header.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: the policy is %q, want %q", query, got, want)
		}
	}
	// 2 ways to refresh × about 60 views and their orders.
	if len(seen) < 100 {
		t.Errorf("only %d pages were reached by links: %v", len(seen), seen)
	}
	t.Logf("%d pages", len(seen))
}

// hash returns the source expression of a text for a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ownScript returns the script of the page.
func ownScript(t testing.TB) string {
	t.Helper()
	script, err := os.ReadFile("templates/page.js")
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

func TestHeaders(t *testing.T) {
	h := page(samplecluster.Healthy(t))
	_, header, body := get(t, h, "")
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Content-Type": "text/html; charset=utf-8", "Content-Length": fmt.Sprint(len(body)),
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for _, test := range []struct {
		method, path string
		status       int
		header, want string
	}{
		{"HEAD", "/ui/", 200, "Content-Length", fmt.Sprint(len(body))},
		{"POST", "/ui/", 405, "Allow", "GET, HEAD"},
		{"DELETE", "/ui/?node=n1", 405, "Allow", "GET, HEAD"},
		{"GET", "/ui", 200, "Content-Length", fmt.Sprint(len(body))},
		{"GET", "/apis/weir.dev/v1alpha1/ui?node=n1", 200, "Cache-Control", "no-store"},
		{"GET", "/apis/weir.dev/v1alpha1/ui/?node=n1", 200, "Cache-Control", "no-store"},
		{"GET", "/ui/favicon.ico", 404, "Content-Type", "text/html; charset=utf-8"},
		{"GET", "/ui/?node=%zz", 400, "Content-Type", "text/html; charset=utf-8"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		if w.Code != test.status || w.Header().Get(test.header) != test.want {
			t.Errorf("%s %s: got %d and %s %q, want %d and %q", test.method, test.path, w.Code, test.header, w.Header().Get(test.header), test.status, test.want)
		}
		if test.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD has a body of %d bytes", w.Body.Len())
		}
	}
}

// A reader of one namespace sees nothing of another one, and no errors, because errors contain
// addresses.
func TestShowsNoMoreThanItsReaderMaySee(t *testing.T) {
	h := page(samplecluster.Failing(t))
	all, shop := rights.Everything(), []rights.Right{rights.ListPods("shop")}
	for query, want := range map[string][]rights.Right{
		"":                              all,
		"?node=n1":                      all,
		"?missing":                      all,
		"?sources":                      all,
		"?eviction=n1":                  append(rights.Everything(), rights.GetOwnNode("n1", "eviction")),
		"?events=Pod/shop/web-4":        {rights.ListEvents("shop")},
		"?events=Pod/shop":              nil,
		"?events=Pod/shop/a&pod=bank/v": nil,
		"?autoscalers":                  all,
		"?hpa=shop/web":                 {{Verb: "get", Group: "autoscaling", Resource: "horizontalpodautoscalers", Namespace: "shop", Name: "web"}, rights.ListPods("shop")},
		"?autoscaler=shop/web":          {{Verb: "get", Group: "autoscaling.weir.dev", Resource: "autoscalers", Namespace: "shop", Name: "web"}, rights.ListPods("shop")},
		"?hpa=web":                      nil,
		"?nodes":                        all,
		"?namespaces":                   all,
		"?pods":                         all,
		"?pods&label=app":               all,
		"?namespace=shop&label=app&reason=NodeTimeout": shop,
		"?q=shop": all,
		"?pod=/" + string(samplecluster.UID("a", "b")): all,
		"?namespace=shop":                shop,
		"?namespace=shop&q=web":          shop,
		"?namespace=shop&sort=cpu":       shop,
		"?workloads":                     all,
		"?namespace=shop&list=workloads": shop,
		"?workload=shop/StatefulSet/web": shop,
		"?workload=shop/web":             nil,
		"?workload=/StatefulSet/web":     nil,
		"?pod=shop/web-4":                shop,
		"?pod=shop/web-1":                shop,
		"?container=shop/web-4/app":      shop,
		"?pod=shop/nobody":               shop,
		"?pod=shop":                      nil,
		"?bogus":                         nil,
		"?namespace=shop&namespace=bank": nil,
		"?namespace=shop&node=n1":        nil,
	} {
		r := httptest.NewRequest(http.MethodGet, "/ui/"+query, nil)
		if got := ui.Rights(r); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
		if _, _, body := get(t, h, query); !slices.Contains(want, rights.ListPods("")) {
			for _, secret := range []string{"bank", "vault", "192.0.2", "x509", "import-7g2k8", "kube-proxy"} {
				if strings.Contains(body, secret) && !strings.Contains(query, secret) {
					t.Errorf("%s shows %q", query, secret)
				}
			}
		}
	}
}

// Names and errors are shown as text, whatever they contain.
func TestNamesAreText(t *testing.T) {
	w := samplecluster.New(t)
	n := w.Node(`<b>"n1'</b>`, 4, 16).Itself(1, 2)
	n.Alone = true
	n.System(`/system.slice/<script>alert(1)</script>`, 0.1, 10)
	n.System("/system.slice/a\x00b\x1b[31m\u202egnp", 0.1, 10)
	n.System(`/system.slice/"onmouseover="x`, 0.1, 10)
	bad := w.Node("n2", 4, 16)
	bad.Fails = func(time.Time) error {
		return &metric.ReadError{Reason: metric.NodeBadPayload, Err: errors.New("</p><script>\x00")}
	}
	w.Run()
	h := page(w)
	for _, query := range []string{"", "?nodes", "?node=%3Cb%3E%22n1%27%3C/b%3E", "?node=n2", "?sources", "?q=%3Cscript%3E", "?node=%3Cscript%3E", "?pod=%3Cscript%3E/%22", "?%3Cscript%3E"} {
		_, _, body := get(t, h, query)
		if _, err := text(body); err != nil {
			t.Errorf("%s is not well formed: %v", query, err)
		}
		if body = strings.Replace(body, "<script>"+ownScript(t), "", 1); strings.Contains(body, "<script") || strings.Contains(body, `"onmouseover`) || strings.ContainsAny(body, "\x00\x1b\u202e") {
			t.Errorf("%s has what a name or an error holds as it is:\n%s", query, body)
		}
	}
}

// The overview of 1,000 nodes and 30,000 pods is below 60 kB, and below 12 kB as it is sent.
func TestLargeOverview(t *testing.T) {
	h := page(samplecluster.Large(t, 1000))
	status, _, plain := get(t, h, "")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ui/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	weirdev.Gzip(h).ServeHTTP(w, r)
	sent := w.Body.Len()
	if status != http.StatusOK || w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" || len(plain) > 60_000 || sent > 12_000 {
		t.Errorf("%d, %d bytes; %d, %q, %d bytes: want 200, at most 60,000 bytes; 200, gzip, at most 12,000 bytes", status, len(plain), w.Code, w.Header().Get("Content-Encoding"), sent)
	}
	t.Logf("%d bytes, %d as it is sent", len(plain), sent)
}

// The lists of workloads continue on further pages.
func TestWorkloadsContinue(t *testing.T) {
	w := samplecluster.New(t)
	n := w.Node("n1", 4, 16).Itself(1, 2)
	known := cluster.FactsChange{Nodes: []*cluster.Node{n.Facts(true)}}
	for i := range 101 {
		pod := fmt.Sprintf("app%03d-0", i)
		known.Pods = append(known.Pods, samplecluster.PodFacts("n1", "shop", pod, "app"))
		n.Container("shop", pod, "app", 0.1, 10)
	}
	w.Knows(known)
	h := page(w.Run())
	for _, query := range []string{"?workloads&sort=name", "?namespace=shop&sort=name"} {
		_, _, body := get(t, h, query)
		link, _, ok := strings.Cut(body, `">1 more</a>`)
		link = strings.ReplaceAll(link[strings.LastIndex(link, `"`)+1:], "&amp;", "&")
		if _, _, rest := get(t, h, link); !ok || strings.Count(rest, `">shop/app`)+strings.Count(rest, `">app`) != 1 || !strings.Contains(rest, `href="?workload=shop/StatefulSet/app100`) {
			t.Errorf("%s continues at %q with\n%s", query, link, rest)
		}
	}
}

// Lists are cut, whatever the size of the cluster is, and their pages together have every item
// once.
func TestPagesAreBounded(t *testing.T) {
	const nodes = 260
	h := page(samplecluster.Large(t, nodes))
	for _, query := range []string{"", "?nodes", "?namespaces", "?workloads", "?pods", "?node=node-0001", "?namespace=team-01", "?missing", "?sources", "?q=app"} {
		status, _, body := get(t, h, query)
		if status != http.StatusOK || len(body) > 300_000 {
			t.Errorf("%s: %d, %d bytes, want 200 and at most 300,000", query, status, len(body))
		}
	}
	for _, test := range []struct{ first, row, wantText string }{
		{"?nodes", `\[(node-\d+)\]`, "160 more"},
		{"?namespace=team-01", `\[(app-\d+-\d+-\w+-\w+)\]`, "420 more"},
		{"?sources", `kubelet:cadvisor \[(node-\d+)\]`, "160 more"},
		{"?q=app-000", `\[(team-\d+/app-\S+)\]`, "200 more"},
	} {
		want := map[string]int{"?nodes": nodes, "?namespace=team-01": 2 * nodes, "?sources": nodes, "?q=app-000": 300}[test.first]
		rows := regexp.MustCompile(test.row)
		further := regexp.MustCompile(`more\]\((\S+)\)`)
		names := map[string]int{}
		for query, first := test.first, true; query != ""; first = false {
			_, _, body := get(t, h, query)
			pageText, err := text(body)
			if err != nil {
				t.Fatal(err)
			}
			if first && !strings.Contains(pageText, test.wantText) {
				t.Errorf("%s does not say %q:\n%s", query, test.wantText, pageText)
			}
			for _, m := range rows.FindAllStringSubmatch(pageText, -1) {
				names[m[1]]++
			}
			query = ""
			if m := further.FindStringSubmatch(pageText); m != nil {
				query = m[1]
			}
		}
		once := 0
		for _, n := range names {
			if n == 1 {
				once++
			}
		}
		if once != want {
			t.Errorf("%s and what follows it name %d of %d things once", test.first, once, want)
		}
	}
}

// TestResize shows what a resize has not applied in the list of pods, and on the page of the pod with its
// containers.
func TestResize(t *testing.T) {
	w := samplecluster.New(t)
	n1 := w.Node("n1", 4, 16).Itself(1, 4)
	n1.Container("shop", "web-1", "app", 0.3, 180)
	n1.Container("shop", "web-1", "proxy", 0.1, 20)
	pod := samplecluster.PodFacts("n1", "shop", "web-1", "app", "proxy")
	pod.Resize = &cluster.Resize{State: "Deferred", Message: "Node didn't have enough resource: cpu", Applied: []cluster.Applied{{Container: "app", ID: metric.CPURequest, Spec: 2e9, Value: 1e9}}}
	w.Knows(cluster.FactsChange{Nodes: []*cluster.Node{n1.Facts(true)}, Pods: []*cluster.Pod{pod}})
	h := page(w.Run())
	for query, want := range map[string][]string{
		"?pods":           {"resize Deferred: app has CPU request 1000m, not 2000m"},
		"?pod=shop/web-1": {"Deferred: app has CPU request 1000m, not 2000m", "Node didn't have enough resource: cpu", "running, resize Deferred: CPU request 1000m, not 2000m"},
	} {
		_, _, body := get(t, h, query)
		got, err := text(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("%q: the page does not have %q:\n%s", query, want, got)
			}
		}
	}
}
