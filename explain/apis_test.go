package explain_test

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/weir-metrics/weir/api/custommetrics"
	"github.com/weir-metrics/weir/api/model"
	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/apitest"
	"github.com/weir-metrics/weir/test/transcript"
)

// apis are the APIs that say why a number is missing, on a sequence of fixtures.
type apis struct {
	fixture  *explain.Explainer
	resource func(path string) *http.Response
	custom   *custommetrics.Provider
	model    http.Handler
}

// remembering is a view for the model, without any history.
type remembering struct{ *memory.Snapshot }

func (remembering) Points(metric.Entity, metric.ID, time.Time, time.Time) iter.Seq2[time.Time, float64] {
	return func(func(time.Time, float64) bool) {}
}

func newAPIs(t *testing.T) *apis {
	a := &apis{}
	seen := func() *memory.Snapshot { return a.fixture.View.(*memory.Snapshot) }
	facts := func() *cluster.Facts { return a.fixture.Facts }
	sources := func() []explain.SourceState { return a.fixture.Sources }
	now := func() time.Time { return a.fixture.Now }
	scheme, err := resourcemetrics.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	config := apitest.Serve(t, scheme, resourcemetrics.OpenAPIDefinitions, func(s *genericapiserver.GenericAPIServer) error {
		return resourcemetrics.Install(s, resourcemetrics.Options{Snapshot: func() resourcemetrics.UsageReader { return seen() }, Facts: facts, Sources: sources, Now: now})
	})
	a.resource = func(path string) *http.Response {
		t.Helper()
		r, err := (&http.Client{Transport: config.Transport}).Get(config.Host + "/apis/metrics.k8s.io/v1beta1" + path)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a.custom = custommetrics.New(custommetrics.Options{View: func() custommetrics.SampleReader { return seen() }, Facts: facts, Sources: sources, Now: now})
	a.model = model.NewHandler(model.Options{Snapshot: func() model.ModelReader { return remembering{seen()} }, Facts: facts, Sources: sources, Now: now})
	return a
}

// TestAPIsSayWhatIsExplained asks all APIs in random clusters: each API must give the reason that
// an explanation gives.
func TestAPIsSayWhatIsExplained(t *testing.T) {
	a := newAPIs(t)
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 4))
		w := newFixture()
		for round := range 12 {
			now := transcript.Epoch.Add(time.Duration(round) * 15 * time.Second)
			randomRound(t, chance, w, round, now)
			if a.fixture = w.at(now.Add(time.Duration(chance.IntN(15)) * time.Second)); a.fixture.View == nil || a.fixture.Facts == nil || !a.fixture.Facts.Synced {
				continue // there is no answer yet
			}
			a.compare(t)
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	}
}

func (a *apis) compare(t *testing.T) {
	t.Helper()
	missing := map[string]int{} // running pods by their explained reason
	a.fixture.Facts.EachPod(func(p *cluster.Pod) bool {
		e, _ := a.fixture.Pod(p.PodRef)
		finding := a.fixture.Why(p)
		unmarked := finding.Served && finding.Reason != "Ambiguous" // metrics.k8s.io cannot mark a number
		if p.Phase == cluster.Running && !unmarked && finding.Reason != "NodeExcluded" && !strings.HasPrefix(finding.Reason, "Container") && finding.Reason != "PodTerminating" && finding.Reason != "PodPending" {
			missing[finding.Reason]++
		}
		a.agree(t, fmt.Sprintf("pod %v of metrics.k8s.io", p.PodRef), a.reasonOf(t, a.resource(fmt.Sprintf("/namespaces/%s/pods/%s", p.Namespace, p.Name))), finding.Reason, unmarked)
		w := httptest.NewRecorder()
		a.model.ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/apis/metrics/v1alpha1/namespaces/%s/pods/%s", p.Namespace, p.Name), nil))
		if w.Code != http.StatusOK { // the UID does not matter for what it serves
			a.agree(t, fmt.Sprintf("pod %v of the model", p.PodRef), lastReason(w.Body.String()), finding.Reason, finding.Served)
		}
		for i := range e.Findings {
			f := &e.Findings[i]
			info := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: ofGroup[f.Group].Describe().Prometheus}
			_, err := a.custom.GetMetricByName(t.Context(), types.NamespacedName{Namespace: string(p.Namespace), Name: string(p.Name)}, info, labels.Everything())
			if err != nil && !strings.HasSuffix(err.Error(), "(Unsupported)") {
				a.agree(t, fmt.Sprintf("pod %v, %s, of custom.metrics.k8s.io", p.PodRef, f.Group), lastReason(err.Error()), f.Reason, f.Served)
			}
		}
		return true
	})
	a.fixture.Facts.EachNode(func(n *cluster.Node) bool {
		e, _ := a.fixture.Node(n.Name)
		f := &e.Findings[0]
		if f.Served {
			f = &e.Findings[1]
		}
		a.agree(t, fmt.Sprintf("node %s of metrics.k8s.io", n.Name), a.reasonOf(t, a.resource("/nodes/"+string(n.Name))), f.Reason, f.Served && f.Reason != "Ambiguous")
		return true
	})
	a.warned(t, missing)
}

// agree compares the reason of an API, "" for an answer with numbers, with the explained reason.
func (a *apis) agree(t *testing.T, what, said, finding string, served bool) {
	t.Helper()
	if served {
		finding = ""
	}
	if said != finding {
		t.Errorf("%s: the API says %q, the explanation %q", what, said, finding)
	}
}

// reasonOf returns the reason for programs in an answer of metrics.k8s.io. It must be the same as
// the reason for people.
func (a *apis) reasonOf(t *testing.T, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusOK {
		return ""
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || status.Details == nil || len(status.Details.Causes) != 1 {
		t.Fatalf("got %s, %v; want one cause", body, err)
	}
	finding := string(status.Details.Causes[0].Type)
	if people := lastReason(status.Message); people != finding {
		t.Errorf("programs are told %q, people %q", finding, people)
	}
	if strings.Contains(status.Message, address) {
		t.Errorf("%q names an address", status.Message)
	}
	return finding
}

var atEnd = regexp.MustCompile(`\((\w+)\)\s*$`)

// lastReason returns the name in parentheses at the end of a sentence.
func lastReason(s string) string {
	if m := atEnd.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return "no reason in: " + s
}

var counted = regexp.MustCompile(`(\d+) ([A-Z]\w+)`)

// warned compares the warnings of a LIST of all pods with the missing pods.
func (a *apis) warned(t *testing.T, missing map[string]int) {
	t.Helper()
	r := a.resource("/pods")
	r.Body.Close()
	warning := strings.Join(r.Header.Values("Warning"), "\n")
	if (warning == "") != (len(missing) == 0) {
		t.Errorf("got warning %q, want of %v", warning, missing)
	}
	first, _, _ := strings.Cut(warning, "\n")
	for _, m := range counted.FindAllStringSubmatch(first, -1) {
		if got := fmt.Sprint(missing[m[2]]); got != m[1] {
			t.Errorf("%s: %s are explained so", m[0], got)
		}
	}
}
