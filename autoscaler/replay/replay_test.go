package replay

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/internal/history"
)

// began is the start of all traces in the tests.
var began = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// TestTranscripts runs the transcripts in testdata:
//
//	trace for=10m step=15s request=1 limit=2   each line is a series: NAME TIME=VALUE ...
//	spec name                                  the lines below are YAML
//	replay a b startup=0s ...                  the table of specs a and b; with csv, as CSV
//
// A series with the name cpu or memory belongs to the container app, replicas is the recorded
// number of pods, and other names are named metrics. A value is valid until the next one; "-" is a
// gap.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		if filepath.Ext(file) == ".svg" {
			return
		}
		var trace *Trace
		specs := map[string]*autoscalingv2.HorizontalPodAutoscalerSpec{}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "trace":
				trace = readTrace(t, d)
				return ""
			case "spec":
				specs[d.CmdArgs[0].Key] = readSpec(t, d.Input)
				return ""
			case "replay":
				return play(t, d, trace, specs)
			}
			t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func length(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readTrace(t *testing.T, d *datadriven.TestData) *Trace {
	trace := &Trace{Namespace: "shop", Target: "Deployment/web", From: began, Named: map[string]Series{}, Startup: Startup{Median: 20 * time.Second, Pods: 3}}
	app := TraceContainer{Name: "app"}
	for _, arg := range d.CmdArgs {
		switch v := arg.Vals[0]; arg.Key {
		case "for":
			trace.To = began.Add(length(t, v))
		case "step":
			trace.Step = length(t, v)
		case "request":
			app.Requests.CPU = autoscaler.MilliQuantity{Milli: new(resource.MustParse(v)).MilliValue(), Set: true}
		case "memory-request":
			app.Requests.Memory = autoscaler.MilliQuantity{Milli: new(resource.MustParse(v)).MilliValue(), Set: true}
		case "limit":
			app.Limits.CPU = autoscaler.MilliQuantity{Milli: new(resource.MustParse(v)).MilliValue(), Set: true}
		case "startup":
			trace.Startup = Startup{}
		default:
			t.Fatalf("%s: no argument %q", d.Pos, arg.Key)
		}
	}
	for line := range strings.Lines(d.Input) {
		name, series := readSeries(t, trace, strings.Fields(line))
		switch name {
		case "cpu":
			app.CPU = series
		case "memory":
			app.Memory = series
		case "replicas":
			trace.Replicas = series
		default:
			trace.Named[name] = series
		}
	}
	trace.Containers = []TraceContainer{app}
	return trace
}

// readSeries parses a series. It repeats each value at every step until the next one.
func readSeries(t *testing.T, trace *Trace, words []string) (string, Series) {
	var s Series
	for i, word := range words[1:] {
		at, value, _ := strings.Cut(word, "=")
		if value == "-" {
			continue
		}
		end := trace.To
		if i+2 < len(words) {
			next, _, _ := strings.Cut(words[i+2], "=")
			end = began.Add(length(t, next))
		}
		for at := began.Add(length(t, at)); at.Before(end); at = at.Add(trace.Step) {
			s = append(s, history.Point{At: at, Value: new(resource.MustParse(value)).AsApproximateFloat64()})
		}
	}
	return words[0], s
}

func readSpec(t *testing.T, text string) *autoscalingv2.HorizontalPodAutoscalerSpec {
	t.Helper()
	var spec autoscalingv2.HorizontalPodAutoscalerSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	autoscaler.Default(&spec)
	if err := autoscaler.Validate(&spec, autoscaler.DefaultSettings()); err != nil {
		t.Fatal(err)
	}
	return &spec
}

func play(t *testing.T, d *datadriven.TestData, trace *Trace, specs map[string]*autoscalingv2.HorizontalPodAutoscalerSpec) string {
	o := DefaultOptions(trace)
	var every time.Duration
	var csv bool
	var names []string
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			csv = csv || arg.Key == "csv"
			if arg.Key != "csv" {
				names = append(names, arg.Key)
			}
			continue
		}
		v := length(t, arg.Vals[0])
		switch arg.Key {
		case "startup":
			o.Startup = v
		case "delay":
			o.MetricDelay = v
		case "window":
			o.Window = v
		case "every":
			every = v
		default:
			t.Fatalf("%s: no argument %q", d.Pos, arg.Key)
		}
	}
	r := NewComparison(trace)
	for _, name := range names {
		result, err := Run(trace, specs[name], o)
		if err != nil {
			return fmt.Sprintf("%s: %v\n", name, err)
		}
		r.Add(name, result)
	}
	var out bytes.Buffer
	var err error
	if csv {
		err = r.WriteCSV(&out)
	} else {
		err = r.WriteTable(&out, every)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
