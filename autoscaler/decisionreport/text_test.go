package decisionreport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
)

// crowd decides about a number of pods. The last ones have no number.
func crowd(pods, missing int) (*autoscaler.Decision, Context) {
	percent, settings := int32(50), autoscaler.DefaultSettings()
	reading := autoscaler.Reading{At: noon}
	in := &autoscaler.Input{
		Now: noon, Settings: &settings, Object: types.NamespacedName{Namespace: "shop", Name: "web"},
		Spec: &autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 1000,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: "cpu", Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}},
		},
		Scale:      autoscaler.Scale{SpecReplicas: int32(pods), StatusReplicas: int32(pods), Selector: "app=web"},
		ReadMetric: func(int) autoscaler.Reading { return reading },
	}
	autoscaler.Default(in.Spec)
	for i := range pods {
		name := fmt.Sprintf("web-%03d", i)
		in.Pods = append(in.Pods, autoscaler.PodInput{Name: name, Phase: cluster.Running, Started: noon.Add(-3600e9), Ready: cluster.ReadyTrue,
			Containers: []autoscaler.ContainerInput{{Name: "app", Requests: autoscaler.Requests{CPU: autoscaler.MilliQuantity{Milli: 100, Set: true}}}}})
		if i < pods-missing {
			reading.Samples = append(reading.Samples, autoscaler.PodSample{Pod: name, Milli: 80, At: noon, Window: 15e9})
		}
	}
	return autoscaler.Decide(in), Context{Kind: "HorizontalPodAutoscaler", Mode: Active, Input: in}
}

// TestLongTables checks that a long table is cut, and still has the pods that were not counted.
func TestLongTables(t *testing.T) {
	f := func(pods, missing, rows int, last string) {
		t.Helper()
		d, c := crowd(pods, missing)
		var out bytes.Buffer
		if err := New(d, c).WriteText(&out, false); err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(out.String(), "WHY\n")
		lines := strings.Split(strings.TrimSpace(table), "\n")
		if len(lines) != rows || !strings.HasPrefix(lines[len(lines)-1], last) || strings.Count(table, "Missing") != min(missing, maxRows) {
			t.Errorf("%d pods, %d missing: %d lines, the last %q; want %d with %q\n%s", pods, missing, len(lines), lines[len(lines)-1], rows, last, table)
		}
	}
	f(50, 3, 50, "web-049")
	f(200, 3, 51, "and 150 more: -o json has them")
	f(200, 80, 51, "and 150 more: -o json has them")
}

// TestBriefs checks that the summary says the same as the report.
func TestBriefs(t *testing.T) {
	d, c := crowd(10, 3)
	r, b := New(d, c), Summarize(d, c)
	if b.Summary != r.Summary || b.Object != r.Autoscaler || b.Current != r.Current || b.Desired != r.Desired || b.Max != r.Max || b.Target != r.Target || b.PodsMissing != 3 || b.NoDecision || b.FailedMetrics != nil {
		t.Errorf("got %+v of %+v", b, r)
	}
	in := *c.Input
	in.ReadMetric = func(int) autoscaler.Reading { return autoscaler.Reading{Err: errors.New("gone")} }
	b = Summarize(autoscaler.Decide(&in), c)
	if !b.NoDecision || len(b.FailedMetrics) != 1 || b.FailedMetrics[0] != "cpu" {
		t.Errorf("got %+v; want no decision for want of cpu", b)
	}
}

// TestTextIsSafe checks that names and errors cannot send control sequences to the terminal, and
// that a line stays one line.
func TestTextIsSafe(t *testing.T) {
	d, c := crowd(2, 1)
	c.Verdict = func(int, string) (PodVerdict, bool) {
		return PodVerdict{Reason: "NodeTimeout", Message: "\x1b[2J\nroot#", Advice: "\u202eevil"}, true
	}
	c.OtherController = &OtherController{Desired: 1, Difference: "\x07"}
	c.WriteErr = errors.New("\x1b]0;title\x07")
	r := New(d, c)
	r.Metrics[0].Pods[0].Name = "a\tb\x1b[31m"
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		if err := r.WriteText(&out, colour); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if colour {
			for _, tint := range []string{string(humanize.Bold), string(humanize.Amber), string(humanize.Red), string(humanize.Dim), "\x1b[0m"} {
				text = strings.ReplaceAll(text, tint, "")
			}
		}
		if strings.ContainsAny(text, "\x1b\x07\u202e\t") || strings.Contains(text, "\nroot#") {
			t.Errorf("colour %v: a terminal would obey %q", colour, text)
		}
	}
}

// TestWords checks the formats of numbers.
func TestWords(t *testing.T) {
	f := func(u unit, milli int64, words, quantity string) {
		t.Helper()
		if w, q := u.display(milli), u.exact(milli); w != words || q != quantity {
			t.Errorf("%d thousandths of %d: got %q and %q, want %q and %q", milli, u, w, q, words, quantity)
		}
	}
	f(millicores, 250, "250m", "250m")
	f(millicores, 1500, "1500m", "1500m")
	f(byteCount, 100<<20*1000, "100Mi", "100Mi")
	f(byteCount, 1536<<10*1000, "1.5Mi", "1536Ki")
	f(byteCount, 1234567, "1.2Ki", "1234567m")
	f(plainNumber, 1500, "1.5", "1500m")
	f(plainNumber, -2000, "-2", "-2")
	f(plainNumber, 12345678901, "12,345,678.901", "12345678901m")
}
