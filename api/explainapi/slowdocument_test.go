package explainapi

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain/slow"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

// TestSlowDocument compares the JSON of a report that has every field: programs read these names and units.
func TestSlowDocument(t *testing.T) {
	some, full, none, throttled := 0.62, 0.6, 0.0, 0.45
	pod := slow.Slow{
		Namespace: "shop", Pod: "web-1", Node: "n1", Workload: &cluster.Owner{Kind: "Deployment", Name: "web"},
		From: noon.Add(-5 * time.Minute), To: noon, MeasuredSeconds: 285,
		Summary: "Pod shop/web-1 waited for CPU 62% of the last 5m.", Lost: 0.62, Resource: slow.CPU, Cause: slow.OwnLimit, Message: "waited for CPU 62% of the last 5m",
		Stalls: []slow.Stall{
			{Resource: slow.CPU, Some: &some, Full: &full, Throttled: &throttled, Parts: []slow.Part{{Cause: slow.OwnLimit, Share: 0.45}, {Cause: slow.Neighbours, Share: 0.17}},
				Neighbours: []slow.Neighbour{{Namespace: "batch", Pod: "import", Used: 3.2, Above: 2.7, Share: 0.12}, {Used: 0.5, Above: 0.5, Share: 0.05}}},
			{Resource: slow.Memory, Some: &none, Full: &none},
			{Resource: slow.IO},
		},
		Evidence: []string{"CPU: some thread waited 62% of the time"}, Advice: "Raise limits.cpu.", NotKnown: []string{"weir reads no disks of node n1."},
	}
	r := slow.Report{
		Namespace: "shop", Pod: "web-1", At: noon, WindowSeconds: 300, Summary: pod.Summary, Pods: []slow.Slow{pod}, Measured: 4, NotMeasured: 1, LeftOut: 2,
		NotKnown: "weir reads no stalls of node n2.",
	}
	got, err := json.MarshalIndent(NewSlow(r), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "testdata/slowreport.json"
	if *rewrite {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -rewrite accepts it):\n%s", file, diff)
	}
}
