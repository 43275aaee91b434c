package estimate_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
)

// begin is the start of every history.
var begin = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// newEstimators returns one of each tool.
func newEstimators() map[string]estimate.Estimator {
	return map[string]estimate.Estimator{
		"vpa": estimate.ToolVPA.NewEstimator(), "krr": estimate.ToolKRR.NewEstimator(), "autopilot": estimate.ToolAutopilot.NewEstimator(),
	}
}

// TestTranscripts runs testdata. Each line of a history has a pod, a resource, the time of the first
// sample, the time between samples and the samples: "web-1 cpu 0s 1m 200m*60 1". An OOM kill has a time
// and the container's request and limit: "web-1 oom 26h 100Mi 200Mi". "at" is a time to ask.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			h := &history{t: t}
			for line := range strings.Lines(d.Input) {
				h.read(strings.Fields(line))
			}
			return h.run(newFromArguments(t, d))
		})
	})
}

// newFromArguments returns the estimator that the command names, with the options of its arguments.
func newFromArguments(t *testing.T, d *datadriven.TestData) estimate.Estimator {
	t.Helper()
	argument := func(name string) (value string) {
		if d.HasArg(name) {
			d.ScanArgs(t, name, &value)
		}
		return value
	}
	switch d.Cmd {
	case "vpa":
		o := estimate.VPADefaults()
		if text := argument("peak-interval"); text != "" {
			o.PeakInterval = duration(t, text)
		}
		return estimate.NewVPA(o)
	case "krr":
		o := estimate.KRRDefaults()
		if text := argument("history"); text != "" {
			o.History = duration(t, text)
		}
		return estimate.NewKRR(o)
	case "autopilot":
		return estimate.NewAutopilot(estimate.AutopilotDefaults())
	}
	t.Fatalf("%s: what is %q?", d.Pos, d.Cmd)
	return nil
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// history is a list of events.
type history struct {
	t      *testing.T
	events []event
}

type event struct {
	at time.Time
	do func(e estimate.Estimator) string
}

func (h *history) read(words []string) {
	h.t.Helper()
	add := func(at time.Time, do func(estimate.Estimator) string) { h.events = append(h.events, event{at, do}) }
	if words[0] == "at" {
		at := begin.Add(duration(h.t, words[1]))
		add(at, func(e estimate.Estimator) string { return words[1] + ": " + formatAmounts(e.Recommend(at)) })
		return
	}
	pod, at := words[0], begin.Add(duration(h.t, words[2]))
	if words[1] == "oom" {
		add(at, func(e estimate.Estimator) string {
			e.ObserveOOMKill(estimate.OOMKill{Pod: pod, At: at, Request: h.quantity(words[3]).Value(), Limit: h.quantity(words[4]).Value()})
			return ""
		})
		return
	}
	every := duration(h.t, words[3])
	for _, word := range words[4:] {
		text, repeat, repeats := strings.Cut(word, "*")
		count := 1
		if repeats {
			count, _ = strconv.Atoi(repeat)
		}
		for range count {
			s := estimate.Sample{Pod: pod, Resource: resize.Resource(words[1]), UsagePoint: resize.UsagePoint{At: at, Value: h.quantity(text).AsApproximateFloat64()}}
			add(at, func(e estimate.Estimator) string { e.Observe(s); return "" })
			at = at.Add(every)
		}
	}
}

func (h *history) quantity(text string) *resource.Quantity {
	h.t.Helper()
	q, err := resource.ParseQuantity(text)
	if err != nil {
		h.t.Fatalf("%q: %v", text, err)
	}
	return &q
}

func (h *history) run(e estimate.Estimator) string {
	slices.SortStableFunc(h.events, func(a, b event) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	var out strings.Builder
	for _, event := range h.events {
		if line := event.do(e); line != "" {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String()
}

func formatAmounts(a resize.Amounts) string {
	var words []string
	for _, r := range resize.Resources() {
		if amount := a.Get(r); amount.Set {
			words = append(words, fmt.Sprintf("%s %s", r, resize.FormatAmount(r, amount.Value)))
		} else {
			words = append(words, fmt.Sprintf("%s unknown", r))
		}
	}
	return strings.Join(words, ", ")
}

func TestNothingIsRecommendedWithoutSamples(t *testing.T) {
	for name, e := range newEstimators() {
		if got := e.Recommend(begin); got != (resize.Amounts{}) {
			t.Errorf("%s: got %+v, want no amount", name, got)
		}
	}
}

func TestImpossibleValuesAreIgnored(t *testing.T) {
	for name, e := range newEstimators() {
		for i, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300} {
			for _, r := range append(resize.Resources(), "ephemeral-storage") {
				if r == "ephemeral-storage" {
					value = 1
				}
				e.Observe(estimate.Sample{Pod: "web-1", Resource: r, UsagePoint: resize.UsagePoint{At: begin.Add(time.Duration(i) * time.Minute), Value: value}})
			}
		}
		if got := e.Recommend(begin.Add(time.Hour)); got != (resize.Amounts{}) {
			t.Errorf("%s: got %+v, want no amount", name, got)
		}
	}
}

// randomHistory returns samples of some pods over days, in the order of time, a few of them bursts.
func randomHistory(r *rand.Rand) (samples []estimate.Sample, end time.Time) {
	at := begin
	for range 200 + r.IntN(600) {
		at = at.Add(time.Duration(1+r.IntN(20*60)) * time.Second)
		if r.IntN(100) == 0 {
			at = at.Add(time.Duration(r.IntN(36)) * time.Hour)
		}
		load := r.Float64()
		if r.IntN(20) == 0 {
			load *= 10
		}
		pod := fmt.Sprint("web-", r.IntN(3))
		samples = append(samples,
			estimate.Sample{Pod: pod, Resource: resize.CPU, UsagePoint: resize.UsagePoint{At: at, Value: math.Round(load*1e9) / 1e9}},
			estimate.Sample{Pod: pod, Resource: resize.Memory, UsagePoint: resize.UsagePoint{At: at, Value: math.Round(load * 1e9)}})
	}
	return samples, at
}

func TestSameHistoryHasTheSameResult(t *testing.T) {
	samples, end := randomHistory(rand.New(rand.NewPCG(1, 2)))
	for name := range newEstimators() {
		recommend := func() resize.Amounts {
			e := newEstimators()[name]
			for _, s := range samples {
				e.Observe(s)
			}
			return e.Recommend(end)
		}
		want := recommend()
		for range 20 {
			if got := recommend(); got != want {
				t.Fatalf("%s: got %+v, and before %+v", name, got, want)
			}
		}
	}
}
