package evaluatecmd

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/evaluate"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// village has a Deployment of three pods in namespace shop. Each pod uses 80% of its request now,
// and 20% at any earlier time.
type village struct {
	milli int64
	at    time.Time
}

func (village) Pods(namespace string, _ labels.Selector) (pods []autoscaler.PodInput, err error) {
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		if namespace == "shop" {
			pods = append(pods, autoscaler.PodInput{Name: name, Phase: cluster.Running, Ready: cluster.ReadyTrue, Started: noon.Add(-time.Hour),
				Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 100, Set: true}}}}})
		}
	}
	return pods, nil
}

func (v village) Readings(_ context.Context, _ string, _ labels.Selector, _ *autoscalingv2.HorizontalPodAutoscalerSpec, pods []autoscaler.PodInput) func(int) autoscaler.Reading {
	r := autoscaler.Reading{At: v.at}
	for i := range pods {
		r.Samples = append(r.Samples, autoscaler.PodSample{Pod: pods[i].Name, Milli: v.milli, At: v.at.Add(-5 * time.Second), Window: 15 * time.Second})
	}
	return func(int) autoscaler.Reading { return r }
}

func (village) Verdicts(string, *autoscalingv2.HorizontalPodAutoscalerSpec) func(int, string) (decisionreport.PodVerdict, bool) {
	return func(int, string) (decisionreport.PodVerdict, bool) { return decisionreport.PodVerdict{}, false }
}

// Get knows Deployments only.
func (village) Get(_ context.Context, _ string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *scaleclient.Handle, error) {
	if kind := (schema.GroupKind{Group: "apps", Kind: ref.Kind}); kind.Kind != "Deployment" {
		return autoscaler.Scale{}, nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{"v1"}}
	}
	return autoscaler.Scale{SpecReplicas: 3, StatusReplicas: 3, Selector: "app=web"}, nil, nil
}

func (village) WorkloadID(_ context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (scaleclient.WorkloadID, error) {
	return scaleclient.WorkloadID{Namespace: namespace, Resource: schema.GroupResource{Group: "apps", Resource: "deployments"}, Name: ref.Name}, nil
}

// The transcripts are the input and output that a user sees, with a real server. "sh" runs weir,
// and "kubectl" has the namespace of a kubeconfig. Text after a "<" is the standard input.
func TestTranscripts(t *testing.T) {
	now := func() time.Time { return noon }
	h := autoscaling.NewHandler(autoscaling.Options{Now: now, WorkloadID: village{}.WorkloadID, Evaluator: &evaluate.Evaluator{PodMetrics: village{80, noon}, Scales: village{}, Now: now,
		PodMetricsAt: func(at time.Time) (evaluate.PodMetrics, error) {
			if noon.Sub(at) > 15*time.Minute {
				return nil, fmt.Errorf("memory reaches back to %s", noon.Add(-15*time.Minute).Format(time.RFC3339))
			}
			return village{20, at}, nil
		}}})
	mux := http.NewServeMux()
	for _, path := range autoscaling.Paths() {
		mux.Handle(path, h)
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		if !strings.HasSuffix(file, ".txt") {
			return
		}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			weir, err := cli.NewWeir(srv.URL, srv.Client(), cli.Advised)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Connect: func() (Evaluator, error) { return weir, nil }}
			if d.Cmd == "kubectl" {
				o.Program, o.Namespace = "kubectl weir", func() (string, error) { return "shop", nil }
			}
			line, stdin, _ := strings.Cut(d.Input, "<\n")
			words := strings.Fields(line)
			root := &cobra.Command{Use: words[0]}
			parent := &cobra.Command{Use: "autoscaler"}
			parent.AddCommand(NewCommand(o))
			root.AddCommand(parent)
			root.SetIn(strings.NewReader(stdin))
			var out bytes.Buffer
			if status := cli.Main(t.Context(), root, words[1:], &out, &out); status != 0 {
				fmt.Fprintf(&out, "exit status %d\n", status)
			}
			return out.String()
		})
	})
}
