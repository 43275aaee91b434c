//go:build e2e

package ui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/ui"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/explain/slow"
	"github.com/weir-metrics/weir/test/samplecluster"
)

var docs = flag.String("docs", "", "folder for the pictures of docs/page.md")

// page returns the page of a sample cluster.
func page(w *samplecluster.Cluster) http.Handler {
	return ui.New(ui.Options{Explainer: w.Explainer, Points: w.Points, Version: "v0.4.0", Sinks: func() []ui.SinkState {
		return []ui.SinkState{
			{Name: "memory", LastSuccess: samplecluster.Noon.Add(-3 * time.Second)},
			{Name: "log", LastSuccess: samplecluster.Noon.Add(-2 * time.Minute), Err: errors.New("write /var/log/weir: no space left on device"), Queued: 12},
		}
	}})
}

// badDay returns the page of a cluster in which each pod waits, by each of the causes, and was killed.
func badDay(t *testing.T) http.Handler {
	w := samplecluster.Healthy(t)
	share := func(v float64) *float64 { return &v }
	reading := func(minutes int, mi float64) endlog.Reading {
		return endlog.Reading{At: samplecluster.Noon.Add(time.Duration(minutes) * time.Minute), Value: mi * (1 << 20)}
	}
	waits := slow.Slow{
		Summary: "Pod shop/web-1 waited for CPU 62% of the last 5m: 35% held back by its own CPU limit of 500m, 14% because of shop/import and another pod, 6.5% because of processes of node n1 outside pods.",
		Lost:    0.62, Resource: slow.CPU, Cause: slow.OwnLimit, Advice: "Raise limits.cpu of container app, or remove that limit: `weir resize recommend` shows what fits.",
		Stalls: []slow.Stall{
			{Resource: slow.CPU, Some: share(0.62), Parts: []slow.Part{{Cause: slow.OwnLimit, Share: 0.35}, {Cause: slow.Neighbours, Share: 0.14}, {Cause: slow.System, Share: 0.065}, {Cause: slow.NodeFull, Share: 0.04}, {Cause: slow.Nobody, Share: 0.025}}},
			{Resource: slow.Memory, Some: share(0.031), Parts: []slow.Part{{Cause: slow.OwnLimit, Share: 0.031}}},
			{Resource: slow.IO, Some: share(0.22), Parts: []slow.Part{{Cause: slow.OwnUse, Share: 0.15}, {Cause: slow.Unknown, Share: 0.07}}},
		},
		NotKnown: []string{"What decides about the wait for disk I/O was not read."},
	}
	killed := death.Death{
		Namespace: "shop", Pod: "web-1", Container: "app", Cause: death.ContainerLimit, Confidence: death.Certain, At: samplecluster.Noon.Add(-4 * time.Minute),
		Message: "killed by the kernel: it reached its own memory limit of 512Mi",
		Before: &death.Before{Message: "memory of container app rose fastest, from 190Mi to 511Mi in 11m", Fastest: "container app", Usage: endlog.Usage{
			Memory: []endlog.Trend{{Kind: "container", Name: "app", First: reading(-15, 190), Highest: reading(-4, 511), Last: reading(-4, 511)}}}},
	}
	asked := death.Death{Namespace: "shop", Pod: "web-1", Container: "sidecar", Cause: death.Signalled, Confidence: death.Likely, At: samplecluster.Noon.Add(-40 * time.Minute), Message: "ended by SIGTERM"}
	return ui.New(ui.Options{
		Explainer: w.Explainer, Points: w.Points,
		Slow:   func(slow.Query) (slow.Report, bool) { return slow.Report{Pods: []slow.Slow{waits}}, true },
		Deaths: func(death.Query) death.Report { return death.Report{Deaths: []death.Death{killed, asked}} },
	})
}

// guarded returns the page of a sample cluster with agents on its nodes.
func guarded(t *testing.T) http.Handler {
	return ui.New(ui.Options{Explainer: samplecluster.Failing(t).Explainer, Eviction: func(_ context.Context, node string) (*evictionreport.EvictionReport, error) {
		return samplecluster.UnderPressure(t, node), nil
	}})
}

// serve serves handlers at paths until the test ends.
func serve(t *testing.T, handlers map[string]http.Handler) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	for path, h := range handlers {
		mux.Handle(path, h)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestPages opens the views of a cluster with failures, of a healthy one and of
// a machine, light and dark, wide and narrow.
func TestPages(t *testing.T) {
	b := newBrowser(t)
	url := serve(t, map[string]http.Handler{
		"/ui/": page(samplecluster.Failing(t)),
		// The path through the API server.
		"/apis/weir.dev/v1alpha1/ui/": page(samplecluster.Healthy(t)),
		"/machine/ui/":                page(samplecluster.SingleMachine(t)),
		"/empty/ui/":                  page(samplecluster.New(t)),
		"/huge/ui/":                   page(samplecluster.Large(t, 200)),
		"/agents/ui/":                 guarded(t),
	})
	wide := window{width: 1600, height: 1100}
	dark := window{width: 1280, height: 1000, dark: true}
	for _, test := range []struct {
		name, path string
		window     window
		want       []string
	}{
		{"overview", "/ui/", window{width: 1280, height: 1240}, []string{"What is missing, and why", "NodeCertificate", `href="?node=n4"`, "<path d=\"M"}},
		{"overview-dark", "/ui/", dark, []string{"NodeTimeout"}},
		{"node", "/ui/?node=n1", wide, []string{"System containers", "shop/web-1"}},
		{"node-failing", "/ui/?node=n3", dark, []string{"context deadline exceeded", "evidence"}},
		{"namespace", "/ui/?namespace=shop", wide, []string{"web-3", "CrashLoopBackOff"}},
		{"pod", "/ui/?pod=shop/web-1", window{width: 1280, height: 980}, []string{"rejected", "counted", "request"}},
		{"pod-ambiguous", "/ui/?pod=bank/vault-0", dark, []string{"in doubt", "Ambiguous"}},
		{"container", "/ui/?container=shop/web-1/app", wide, []string{"OldContainer"}},
		{"missing", "/ui/?missing", wide, []string{"What to do:"}},
		{"sources", "/ui/?sources", dark, []string{"no space left on device", "kubelet:cadvisor"}},
		{"pods", "/ui/?pods", wide, []string{"shop/web-5", "Labels"}},
		{"search", "/ui/?q=web", wide, []string{"Search results for web", "shop/web-5"}},
		{"not-found", "/ui/?pod=shop/nobody", wide, []string{"weir does not know pod"}},
		{"well", "/apis/weir.dev/v1alpha1/ui/", wide, []string{"9 of 9 pods"}},
		{"machine", "/machine/ui/", wide, []string{"workbench", "session-3.scope"}},
		{"machine-dark", "/machine/ui/", dark, []string{"postgresql.service"}},
		{"nothing-yet", "/empty/ui/", wide, []string{"no source has been read yet"}},
		{"eviction", "/agents/ui/?eviction=n1", window{width: 1280, height: 1400}, []string{"shop/web-2", "in force", "thresholds at 100Mi", `class="gauge bad"`}},
		{"eviction-narrow", "/agents/ui/?eviction=n1", window{width: 500, height: 1600}, []string{"14Gi of 100Gi (14%) left"}},
		{"eviction-dark", "/agents/ui/?eviction=n1", dark, []string{"PodDisruptionBudget"}},
		{"huge", "/huge/ui/", wide, []string{"175 more"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := b.open(t, test.name, url+test.path, test.window)
			s.has(t, test.want...)
			if light := s.brightness(); (light > 0.5) == test.window.dark {
				t.Errorf("%s: the ground has brightness %.2f, and dark is asked for: %v", s.file, light, test.window.dark)
			}
		})
	}
}

// TestPictures takes pictures of pages on a bad and on a good day, wide and on a telephone, light and
// dark, for people to look at. With -docs it also writes those of docs/page.md there.
func TestPictures(t *testing.T) {
	b := newBrowser(t)
	bad, good := page(samplecluster.Failing(t)), page(samplecluster.Healthy(t))
	waiting := badDay(t)
	url := serve(t, map[string]http.Handler{
		"/bad/ui/": bad, "/good/ui/": good, "/waiting/ui/": waiting,
		"/framed/waiting/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { waiting.ServeHTTP(framed{w}, r) }),
		"/framed/bad/ui/":     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { bad.ServeHTTP(framed{w}, r) }),
		"/framed/good/ui/":    http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { good.ServeHTTP(framed{w}, r) }),
		// A window is not narrower than 500, so that a telephone is a frame.
		"/telephone": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `<!doctype html><meta name="color-scheme" content="light dark"/><link rel="icon" href="data:,"/><body style="margin: 0"><iframe src="/framed%s" width="390" height="1400" style="border: 0"></iframe>`,
				html.EscapeString(r.URL.Query().Get("page")))
		}),
	})
	for name, view := range map[string]string{
		"bad": "/bad/ui/", "good": "/good/ui/", "bad-node": "/bad/ui/?node=n3", "good-node": "/good/ui/?node=n2", "bad-pods": "/bad/ui/?pods", "good-pod": "/good/ui/?pod=shop/web-1", "waiting-pod": "/waiting/ui/?pod=shop/web-1",
	} {
		for _, dark := range []bool{false, true} {
			scheme := map[bool]string{false: "", true: "-dark"}[dark]
			wide := b.open(t, name+scheme, url+view, window{width: 1400, height: 1100, dark: dark})
			wide.has(t)
			narrow := b.open(t, name+"-telephone"+scheme, url+"/telephone?page="+neturl.QueryEscape(view), window{width: 500, height: 1400, dark: dark})
			narrow.has(t)
			narrow.crop(t, 390)
			if *docs == "" {
				continue
			}
			for file, s := range map[string]*seen{name + scheme: wide, name + "-telephone" + scheme: narrow} {
				if into := map[string]string{"bad": "overview", "good-pod": "pod", "good-node-dark": "node-dark", "bad-telephone": "telephone"}[file]; into != "" {
					s.storeSmall(t, filepath.Join(*docs, into+".png"))
				}
			}
		}
	}
}

// TestServerGone opens a page of a server that answers once and never again. The page shows since when, and
// is pale. Another server answers again later, and the page has its colours back.
func TestServerGone(t *testing.T) {
	b := newBrowser(t)
	var gone, returns atomic.Int32
	h := page(samplecluster.Failing(t))
	hangUp := func(w http.ResponseWriter) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			c.Close()
		}
	}
	url := serve(t, map[string]http.Handler{
		"/gone/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if gone.Add(1) > 1 {
				hangUp(w)
				return
			}
			h.ServeHTTP(w, r)
		}),
		"/refused/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if gone.Add(1) > 1 {
				http.Error(w, `{"kind":"Status"}`, http.StatusServiceUnavailable) // as kubectl proxy answers
				return
			}
			h.ServeHTTP(w, r)
		}),
		"/returns/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if returns.Add(1) == 2 {
				http.Error(w, "weir starts again", http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		}),
	})
	wait := 40 * time.Second // the page asks every 15 s
	for _, test := range []struct {
		name, path, want string
		window           window
	}{
		{"gone", "/gone/ui/", "No answer since 12:00:00 UTC: Failed to fetch.", window{width: 1400, height: 1100, wait: wait}},
		{"gone-dark", "/refused/ui/", "No answer since 12:00:00 UTC: 503 Service Unavailable.", window{width: 1400, height: 1100, dark: true, wait: wait}},
		{"gone-narrow", "/gone/ui/?node=n1", "No answer since 12:00:00 UTC", window{width: 500, height: 1400, wait: wait}},
		{"gone-narrow-dark", "/gone/ui/?pods", "No answer since 12:00:00 UTC", window{width: 500, height: 1400, dark: true, wait: wait}},
		{"gone-returns", "/returns/ui/", `<body data-refresh="15" class="">`, window{width: 1400, height: 1100, wait: wait}},
	} {
		gone.Store(0)
		s := b.open(t, test.name, url+test.path, test.window)
		s.complaints = nil // the browser reports each request that fails
		s.has(t, test.want)
		if pale := strings.Contains(s.document, `class="gone"`); pale != (test.name != "gone-returns") {
			t.Errorf("%s: the page is pale: %v, want %v", test.name, pale, !pale)
		}
	}
}

// TestConsoleErrorsAreFound opens a page that violates its policy. The browser
// must report that; otherwise the other tests would prove nothing.
func TestConsoleErrorsAreFound(t *testing.T) {
	b := newBrowser(t)
	url := serve(t, map[string]http.Handler{"/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src data:")
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"/><p style="color: red">red</p>`)
	})})
	s := b.open(t, "complaint", url, window{width: 500, height: 300})
	if len(s.complaints) == 0 {
		t.Error("the browser does not complain about a style that the policy forbids")
	}
}

// TestComesAgain checks that an open page reloads itself.
func TestComesAgain(t *testing.T) {
	b := newBrowser(t)
	asked := make(chan struct{}, 100)
	h := page(samplecluster.SingleMachine(t)) // it is read every 5 s
	url := serve(t, map[string]http.Handler{"/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		h.ServeHTTP(w, r)
	})})
	ctx := b.show(t, time.Minute, url+"/ui/")
	for range 2 {
		select {
		case <-asked:
		case <-ctx.Done():
			t.Fatal("in a minute the page was not asked for twice")
		}
	}
}

// TestRefreshKeepsTheReader types, selects, focuses and scrolls in a page, waits until the page has
// shown newer numbers, and compares. Then it pauses, and no request comes.
func TestRefreshKeepsTheReader(t *testing.T) {
	b := newBrowser(t)
	told := make(chan string, 10)
	asked := make(chan struct{}, 100)
	second := atomic.Bool{}
	old, newer := page(samplecluster.SingleMachine(t)), page(samplecluster.Failing(t))
	url := serve(t, map[string]http.Handler{
		"/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			h := old
			if second.Swap(true) {
				h = newer // other content, which the script must show
			}
			h.ServeHTTP(framed{w}, r)
		}),
		"/told": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.URL.RawQuery }),
		"/reader": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"/><iframe src="/ui/" width="600" height="500"></iframe><script>
const tell = (what) => fetch("/told?" + what);
addEventListener("load", () => {
	const page = document.querySelector("iframe").contentWindow, doc = page.document;
	const search = doc.querySelector("input[type=search]");
	search.value = "typ";
	search.focus();
	search.setSelectionRange(1, 2);
	page.scrollTo(0, 40);
	const main = doc.getElementById("main"), before = main.textContent;
	const wait = setInterval(() => {
		if (main.textContent === before) return;
		clearInterval(wait);
		const kept = main === doc.getElementById("main") ? "kept" : "replaced";
		tell([search.value, search.selectionStart, search.selectionEnd, doc.activeElement === search, page.scrollY, kept, doc.title].join("|")).then(() => {
			doc.getElementById("refresh").click();
			tell(doc.getElementById("refresh").textContent + "|" + page.localStorage.getItem("weir-refresh"));
		});
	}, 100);
});
</script>`)
		}),
	})
	ctx := b.show(t, 2*time.Minute, url+"/reader")
	for _, want := range []string{"typ|1|2|true|40|kept|(3) Overview · weir", "resume|off"} {
		select {
		case got := <-told:
			if text, err := neturl.QueryUnescape(got); err != nil || text != want {
				t.Errorf("the reader tells %q (%v), want %q", text, err, want)
			}
		case <-ctx.Done():
			t.Fatal("in two minutes the page did not show newer numbers")
		}
	}
	for len(asked) > 0 {
		<-asked
	}
	select {
	case <-asked:
		t.Error("a paused page asks again")
	case <-time.After(7 * time.Second): // the page asks every 5 s
	}
}

// TestChartsAreRead reads a chart with the pointer and the keyboard, and moves through the rows.
func TestChartsAreRead(t *testing.T) {
	b := newBrowser(t)
	told := make(chan string, 10)
	h := page(samplecluster.Healthy(t))
	url := serve(t, map[string]http.Handler{
		"/ui/":  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(framed{w}, r) }),
		"/told": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { told <- r.URL.RawQuery }),
		"/reader": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"/><iframe src="/ui/?node=n2&refresh=off" width="900" height="900"></iframe><script>
addEventListener("load", () => {
	const page = document.querySelector("iframe").contentWindow, doc = page.document;
	const [chart, other] = doc.querySelectorAll("figure"), out = chart.querySelector("output"), said = [out.textContent];
	const press = (key, on) => (on || doc.activeElement).dispatchEvent(new page.KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
	const plot = chart.querySelector(".plot").getBoundingClientRect();
	chart.dispatchEvent(new page.PointerEvent("pointermove", {bubbles: true, clientX: plot.left + plot.width / 2, clientY: plot.top + 5}));
	said.push(out.textContent, other.querySelector("output").textContent, out.getAttribute("aria-live"));
	chart.focus();
	press("End"); press("ArrowLeft");
	said.push(out.textContent);
	press("Escape");
	said.push(out.textContent);
	press("j"); press("j");
	said.push(doc.activeElement.textContent);
	press("k");
	said.push(doc.activeElement.textContent);
	press("/");
	said.push(doc.activeElement.name);
	fetch("/told?" + said.join("|"));
});
</script>`)
		}),
	})
	ctx := b.show(t, time.Minute, url+"/reader")
	select {
	case got := <-told:
		const want = "1320m|1297m at 11:52:33|4.83Gi at 11:52:33|polite|1320m at 11:59:48|1320m|shop/mail-1|shop/web-1|q"
		if text, err := neturl.QueryUnescape(got); err != nil || text != want {
			t.Errorf("the reader tells %q (%v), want %q", text, err, want)
		}
	case <-ctx.Done():
		t.Fatal("the page was not read in a minute")
	}
}

// TestFits measures pages from another page, which may run a script, in windows
// from a telephone's to a wide screen's. Nothing may be wider than the window. On a telephone a finger can hit
// every link, and the nodes are not far down.
func TestFits(t *testing.T) {
	b := newBrowser(t)
	h := guarded(t)
	views := []string{"", "?eviction=n1", "?node=n1", "?node=n3", "?namespace=shop", "?pod=shop/web-1", "?container=shop/web-1/app", "?missing", "?sources", "?q=web", "?nodes", "?pods"}
	widths := []int{360, 700, 1000, 1600}
	url := serve(t, map[string]http.Handler{
		"/ui/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(framed{w}, r)
		}),
		"/measure": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"/>`)
			for _, view := range views {
				for _, width := range widths {
					fmt.Fprintf(w, `<iframe title="%s" src="/ui/%s" width="%d" height="900" style="border: 0"></iframe>`, view, view, width)
				}
			}
			fmt.Fprint(w, `<ul id="widths"></ul><script>
addEventListener("load", () => {
	for (const f of document.querySelectorAll("iframe")) {
		const root = f.contentDocument.documentElement, li = document.createElement("li");
		let inner = 0;
		for (const s of f.contentDocument.querySelectorAll(".scroll")) inner = Math.max(inner, s.scrollWidth - s.clientWidth);
		const small = [...f.contentDocument.querySelectorAll("a, button, input:not([type=hidden]), select, summary")].filter((e) => {
			const r = e.getBoundingClientRect();
			return e.checkVisibility() && r.right > 0 && (r.height < 24 || r.width < 24);
		}).map((e) => e.textContent);
		const list = f.contentDocument.querySelector("section:has(table)");
		li.textContent = "view " + f.title + " in " + f.width + " is " + root.scrollWidth + " wide, tables hide " + inner + ", list at " + (list ? Math.round(list.getBoundingClientRect().top) : 0) + ", small: " + small.join("; ");
		document.getElementById("widths").append(li);
	}
});
</script>`)
		}),
	})
	s := b.open(t, "narrow", url+"/measure", window{width: 1600, height: 2000})
	found := regexp.MustCompile(`view (\S*) in (\d+) is (\d+) wide, tables hide (\d+), list at (\d+), small: (.*?)</li>`).FindAllStringSubmatch(s.document, -1)
	if want := len(views) * len(widths); len(found) != want {
		t.Fatalf("%d views were measured, want %d:\n%s", len(found), want, s.document)
	}
	for _, m := range found {
		window, _ := strconv.Atoi(m[2])
		wide, _ := strconv.Atoi(m[3])
		hidden, _ := strconv.Atoi(m[4])
		if wide > window || hidden > 0 {
			t.Errorf("/ui/%s is %d wide in a window of %d, and a table hides %d", m[1], wide, window, hidden)
		}
		if window > 400 {
			continue
		}
		if m[6] != "" {
			t.Errorf("/ui/%s in a window of %d has what a finger cannot hit, smaller than 24 by 24: %s", m[1], window, m[6])
		}
		if list, _ := strconv.Atoi(m[5]); m[1] == "" && list > 1300 {
			t.Errorf("on a telephone of %d, the nodes of a bad day begin at %d, want at most 1,300", window, list)
		}
	}
}

// framed allows a page in a frame, which its policy forbids.
type framed struct{ http.ResponseWriter }

func (f framed) WriteHeader(status int) {
	f.Header().Del("Content-Security-Policy")
	f.ResponseWriter.WriteHeader(status)
}
