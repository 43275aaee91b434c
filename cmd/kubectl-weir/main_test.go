package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/eviction/evictionreport"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// newWeir returns a weir that has just begun: it knows of pods and has read none.
func newWeir() http.Handler {
	var facts *cluster.Facts
	facts = facts.With(cluster.FactsChange{Synced: true, At: time.Now(), Nodes: []*cluster.Node{{Name: "n1"}}, Pods: []*cluster.Pod{
		{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Phase: cluster.Pending},
		{PodRef: metric.PodRef{Namespace: "bank", Name: "vault"}, Phase: cluster.Pending},
	}})
	mux := http.NewServeMux()
	answers := explainapi.NewHandler(func() *explain.Explainer { return &explain.Explainer{Now: time.Now(), Facts: facts} })
	for _, path := range explainapi.Paths() {
		mux.Handle(path, answers)
	}
	decisions := autoscaling.NewHandler(autoscaling.Options{Explain: func(kind, namespace, name string) (*decisionreport.DecisionReport, bool) {
		return &decisionreport.DecisionReport{Autoscaler: decisionreport.Object{Kind: kind, Namespace: namespace, Name: name}, Mode: decisionreport.Shadow, At: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC),
			Summary: name + ": would stay at 3 replicas, because cpu is <unknown>", Current: 3, Desired: 3,
			Missing: []decisionreport.MissingCause{{Metric: "cpu", Reason: "NodeTimeout", Severity: "broken", Message: "node n1 did not answer in time", Advice: "`weir explain node n1` shows more.", Pods: []string{"web"}}},
		}, namespace+"/"+name == "shop/web"
	}})
	for _, path := range autoscaling.Paths() {
		mux.Handle(path, decisions)
	}
	agent := nodeapi.NewHandler(nodeapi.Options{Node: "n1", Eviction: func() *evictionreport.EvictionReport {
		return &evictionreport.EvictionReport{Node: "n1", Mode: "observe", State: evictionreport.Starting, Summary: "n1: the first look is not done yet", At: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}
	}})
	for _, path := range nodeapi.Paths() {
		mux.Handle(path, agent)
	}
	mux.HandleFunc(weirdev.Path+"namespaces/{namespace}/pods", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"apiVersion":"weir.dev/v1alpha1","kind":"PodUsageList","resource":"pods","items":[{"namespace":%q,"pod":"web","cpu":{"nanocores":250000000},"memory":{"workingSetBytes":188743680}}]}`,
			r.PathValue("namespace"))
	})
	mux.HandleFunc(weirdev.Path+"pods", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"apiVersion":"weir.dev/v1alpha1","kind":"PodUsageList","resource":"pods","items":[{"namespace":"bank","pod":"vault"}]}`)
	})
	mux.HandleFunc(weirdev.Path+"nodes", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"apiVersion":"weir.dev/v1alpha1","kind":"NodeUsageList","resource":"nodes","items":[{"node":"n1"}]}`)
	})
	return mux
}

// newAPIServer returns an API server that hands requests on to weir. What becomes
// of one depends on its token, and what it then says is what real ones say.
func newAPIServer(weir http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch {
		case token == "secret" && strings.HasPrefix(r.URL.Path, weirdev.Path):
			weir.ServeHTTP(w, r)
		case token == "stranger":
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
		case token == "jane":
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods.weir.dev is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"weir.dev\" in the namespace \"shop\"","reason":"Forbidden","code":403}`)
		case token == "down":
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		default:
			http.NotFound(w, r)
		}
	})
}

// setUp starts an API server and a weir, and writes a kubeconfig for each token.
func setUp(t *testing.T) (direct *httptest.Server, dir string) {
	t.Helper()
	weir := newWeir()
	api := httptest.NewTLSServer(newAPIServer(weir))
	direct = httptest.NewServer(weir)
	t.Cleanup(api.Close)
	t.Cleanup(direct.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}))
	dir = t.TempDir()
	for _, token := range []string{"secret", "stranger", "jane", "down", "bare"} {
		kubeconfig := strings.NewReplacer("SERVER", api.URL, "TOKEN", token, "AUTHORITY", ca).Replace(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "SERVER", certificate-authority-data: "AUTHORITY"}}]
users: [{name: u, user: {token: TOKEN}}]
contexts: [{name: x, context: {cluster: c, user: u, namespace: shop}}]
current-context: x
`)
		if err := os.WriteFile(filepath.Join(dir, token), []byte(kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "secret"))
	return direct, dir
}

func nothing(string) string { return "" }

// The transcripts are what a user types and sees.
func TestTranscripts(t *testing.T) {
	direct, dir := setUp(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		if !strings.HasSuffix(file, ".txt") {
			return
		}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			var out bytes.Buffer
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(strings.NewReplacer("$SERVER", direct.URL, "$DIR", dir).Replace(line))
				if len(words) < 2 || words[0] != "kubectl" || words[1] != "weir" {
					t.Fatalf("%s: %q is no command of the plugin's", d.Pos, line)
				}
				if status := cli.Main(t.Context(), newRoot(nothing), words[2:], &out, &out); status != 0 {
					fmt.Fprintf(&out, "exit status %d\n", status)
				}
			}
			return strings.NewReplacer(direct.URL, "$SERVER", dir, "$DIR").Replace(out.String())
		})
	})
}

// Explanations come through the API server, of the namespace of the context unless
// another is named.
func TestExplains(t *testing.T) {
	setUp(t)
	f := func(command, kind, pod, reason string) {
		t.Helper()
		var out bytes.Buffer
		if status := cli.Main(t.Context(), newRoot(nothing), strings.Fields(command), &out, &out); status != 0 {
			t.Errorf("kubectl weir %s: status %d\n%s", command, status, &out)
			return
		}
		var got struct {
			APIVersion, Kind string
			Namespace, Pod   string
			Findings, Causes []struct{ Reason string }
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("kubectl weir %s: %v\n%s", command, err, &out)
		}
		said := slices.Concat(got.Findings, got.Causes)
		if got.APIVersion != "weir.dev/v1alpha1" || got.Kind != kind || got.Namespace+"/"+got.Pod != pod || reason != "" && (len(said) == 0 || said[0].Reason != reason) {
			t.Errorf("kubectl weir %s: got %+v, want a %s of %s with %s", command, got, kind, pod, reason)
		}
	}
	f("explain pod web -o json", "PodExplanation", "shop/web", "PodPending")
	f("explain pod bank/vault -o json", "PodExplanation", "bank/vault", "PodPending")
	f("explain pod vault -n bank -o json", "PodExplanation", "bank/vault", "PodPending")
	f("explain node n1 -o json", "NodeExplanation", "/", "NodeNotScrapedYet")
	f("explain namespace shop -o json", "MissingReport", "shop/", "")
}

// TestWithoutAKubeconfig checks what the commands need, and that a weir's address does not suffice for
// those that also ask the API server.
func TestWithoutAKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	f := func(command, want string) {
		t.Helper()
		var out bytes.Buffer
		status := cli.Main(t.Context(), newRoot(nothing), strings.Fields(command), &out, &out)
		if want = "error: find the cluster: there is no kubeconfig\nName a kubeconfig with --kubeconfig=FILE" + want + "\n"; status != 1 || out.String() != want {
			t.Errorf("kubectl weir %s: status %d, got\n%swant\n%s", command, status, &out, want)
		}
	}
	const cluster = ": this command also uses the API server, with your rights."
	f("doctor", cluster)
	f("doctor --server=http://127.0.0.1:1", cluster)
	f("explain missing", ", or a weir with --server=URL.")
}

// The environment names a weir as --server does, and that has no context.
func TestServerOfTheEnvironment(t *testing.T) {
	direct, _ := setUp(t)
	var out bytes.Buffer
	getenv := func(name string) string { return map[string]string{"WEIR_SERVER": direct.URL}[name] }
	status := cli.Main(t.Context(), newRoot(getenv), strings.Fields("top pods --no-headers"), &out, &out)
	if want := "bank   vault   -   -\n1 of 1 lack a number: -o wide shows why.\n"; status != 0 || out.String() != want {
		t.Errorf("got status %d and %q, want 0 and %q", status, &out, want)
	}
}
