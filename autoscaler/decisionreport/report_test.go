package decisionreport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/cmptest"
)

// noon is the time of each decision. Times in transcripts are relative to it.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestTranscripts runs autoscaler.Decide and prints the report. "spec" sets a specification in YAML
// until the next "spec". The lines of "decide" give the other inputs:
//
//	decide [replicas=3] [status=3] [mode=Active] [kind=Autoscaler] [selector=app=web] [json] [forgetful] [zeroed]
//	pod web-1 [cpu=100m] [memory=1Gi] [sidecar=10m|none] [phase=Pending] [ready=no|since=-1m] [started=-1h] [deleted]
//	sample web-1 80m [metric=0] [age=10s] [window=15s]
//	value 1200m [metric=0]
//	fail [metric=0] the error
//	answered [metric=0] adapter keda
//	verdict web-1 [metric=0] Reason "message" "advice"
//	recommended 7 -1m45s
//	added 2 -10s
//	removed 2 -10s
//	noscale the error
//	write the error
//	other 4 [why it differs]
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		s := &scene{}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "spec":
				s.spec = autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
				if err := yaml.UnmarshalStrict([]byte(d.Input), &s.spec); err != nil {
					d.Fatalf(t, "%v", err)
				}
				autoscaler.Default(&s.spec)
				if err := autoscaler.Validate(&s.spec, autoscaler.Settings{ScaleToZero: true}); err != nil {
					d.Fatalf(t, "%v", err)
				}
				return ""
			case "decide":
				r := s.decide(t, d)
				again(t, r)
				if d.HasArg("json") {
					text, err := json.MarshalIndent(r, "", "  ")
					if err != nil {
						t.Fatal(err)
					}
					return string(text) + "\n"
				}
				var out bytes.Buffer
				if err := r.WriteText(&out, false); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

// again checks that a report can be encoded as JSON and decoded without a change.
func again(t *testing.T, r *DecisionReport) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var read DecisionReport
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "written and read", r, &read)
}

// scene has the inputs of a decision.
type scene struct {
	spec     autoscalingv2.HorizontalPodAutoscalerSpec
	in       autoscaler.Input
	context  Context
	readings map[int]*autoscaler.Reading
	verdicts map[string]PodVerdict
	zeroed   bool
}

func (s *scene) reading(i int) *autoscaler.Reading {
	if s.readings[i] == nil {
		s.readings[i] = &autoscaler.Reading{At: noon.Add(-10 * time.Second)}
	}
	return s.readings[i]
}

func (s *scene) decide(t *testing.T, d *datadriven.TestData) *DecisionReport {
	settings := autoscaler.DefaultSettings()
	settings.ScaleToZero = true
	s.readings, s.verdicts = map[int]*autoscaler.Reading{}, map[string]PodVerdict{}
	replicas, status, kind, selector := 3, -1, "HorizontalPodAutoscaler", "app=web"
	s.context = Context{Mode: Active, Input: &s.in, NoMemory: d.HasArg("forgetful")}
	for _, arg := range d.CmdArgs {
		switch value := strings.Join(arg.Vals, ","); arg.Key {
		case "replicas":
			replicas = number(t, value)
		case "status":
			status = number(t, value)
		case "mode":
			if s.context.Mode = value; value == "none" {
				s.context.Mode = ""
			}
		case "kind":
			kind = value
		case "selector":
			selector = value
		case "zeroed":
			s.zeroed = true
		case "json", "forgetful":
		default:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		}
	}
	if status < 0 {
		status = replicas
	}
	s.context.Kind = kind
	s.in = autoscaler.Input{
		Now: noon, Settings: &settings, Object: types.NamespacedName{Namespace: "shop", Name: "web"}, Spec: &s.spec,
		Status: &autoscalingv2.HorizontalPodAutoscalerStatus{}, Scale: autoscaler.Scale{SpecReplicas: int32(replicas), StatusReplicas: int32(status), Selector: selector},
		Memory: autoscaler.Memory{Recommendations: []autoscaler.ReplicaRecommendation{{Replicas: int32(replicas), At: noon.Add(-2 * time.Hour)}}},
	}
	if s.zeroed {
		s.in.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScaledToZero, Status: corev1.ConditionTrue}}
		s.zeroed = false
	}
	for line := range strings.Lines(d.Input) {
		if err := s.line(t, strings.TrimSpace(line)); err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
	}
	s.in.ReadMetric = func(i int) autoscaler.Reading { return *s.reading(i) }
	s.context.Verdict = func(i int, pod string) (PodVerdict, bool) {
		v, ok := s.verdicts[fmt.Sprint(i, pod)]
		return v, ok
	}
	return New(autoscaler.Decide(&s.in), s.context)
}

func (s *scene) line(t *testing.T, line string) error {
	what, rest, _ := strings.Cut(line, " ")
	at := 0
	if after, ok := strings.CutPrefix(rest, "metric="); ok {
		n, more, _ := strings.Cut(after, " ")
		at, rest = number(t, n), more
	}
	words := strings.Fields(rest)
	switch what {
	case "pod":
		s.in.Pods = append(s.in.Pods, pod(t, words))
	case "sample":
		x := autoscaler.PodSample{Pod: words[0], Milli: milli(words[1]), At: noon.Add(-10 * time.Second), Window: 15 * time.Second}
		for _, w := range words[2:] {
			switch key, value, _ := strings.Cut(w, "="); key {
			case "age":
				x.At = noon.Add(-length(t, value))
			case "window":
				x.Window = length(t, value)
			case "metric":
				at = number(t, value)
			}
		}
		s.reading(at).Samples = append(s.reading(at).Samples, x)
	case "value":
		s.reading(at).Values = append(s.reading(at).Values, milli(words[0]))
	case "answered":
		s.reading(at).AnsweredBy = rest
	case "fail":
		s.reading(at).Err = errors.New(rest)
	case "verdict":
		parts := strings.Split(rest, `"`)
		of := strings.Fields(parts[0])
		s.verdicts[fmt.Sprint(at, of[0])] = PodVerdict{Reason: of[1], Message: parts[1], Advice: parts[3]}
	case "recommended":
		s.in.Memory.Recommendations = append(s.in.Memory.Recommendations, autoscaler.ReplicaRecommendation{Replicas: int32(number(t, words[0])), At: noon.Add(length(t, words[1]))})
	case "added":
		s.in.Memory.Ups = append(s.in.Memory.Ups, autoscaler.ReplicaChange{Replicas: int32(number(t, words[0])), At: noon.Add(length(t, words[1]))})
	case "removed":
		s.in.Memory.Downs = append(s.in.Memory.Downs, autoscaler.ReplicaChange{Replicas: int32(number(t, words[0])), At: noon.Add(length(t, words[1]))})
	case "noscale":
		s.in.ScaleErr = errors.New(rest)
	case "write":
		s.context.WriteErr = errors.New(rest)
	case "rival":
		s.in.Overlapping = []types.NamespacedName{s.in.Object, {Namespace: "shop", Name: words[0]}}
	case "other":
		reason := strings.Join(words[1:], " ")
		s.context.OtherController = &OtherController{Desired: int32(number(t, words[0])), Agrees: reason == "", Difference: reason}
	default:
		return errors.New("unknown line")
	}
	return nil
}

func pod(t *testing.T, words []string) autoscaler.PodInput {
	p := autoscaler.PodInput{Name: words[0], Phase: cluster.Running, Started: noon.Add(-time.Hour), Ready: cluster.ReadyTrue, ReadySince: noon.Add(-50 * time.Minute),
		Containers: []autoscaler.ContainerInput{{Name: "app"}}}
	for _, w := range words[1:] {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "cpu":
			p.Containers[0].Requests.CPU = autoscaler.MilliQuantity{Milli: milli(value), Set: true}
		case "memory":
			p.Containers[0].Requests.Memory = autoscaler.MilliQuantity{Milli: milli(value), Set: true}
		case "sidecar":
			c := autoscaler.ContainerInput{Name: "sidecar", Role: cluster.Sidecar}
			if value != "none" {
				c.Requests.CPU = autoscaler.MilliQuantity{Milli: milli(value), Set: true}
			}
			p.Containers = append(p.Containers, c)
		case "phase":
			p.Phase, p.Ready = cluster.Phase(value), cluster.ReadyFalse
		case "ready":
			p.Ready = cluster.ReadyFalse
		case "since":
			p.ReadySince = noon.Add(length(t, value))
		case "started":
			p.Started = noon.Add(length(t, value))
		case "deleted":
			p.Terminating = true
		default:
			t.Fatalf("unknown %s of pod %s", key, p.Name)
		}
	}
	return p
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func length(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func milli(text string) int64 {
	q := resource.MustParse(text)
	return q.MilliValue()
}

// A report looks up the reason of a pod without a number once, and uses it in several places.
func TestVerdictsAreLookedUpOnce(t *testing.T) {
	lookUps := map[string]int{}
	d := &autoscaler.Decision{Metrics: []autoscaler.MetricDecision{{Type: autoscalingv2.PodsMetricSourceType, Pods: []autoscaler.ClassifiedPod{
		{Pod: "web-0", Class: autoscaler.Missing, Reason: autoscaler.ReasonNoSample}, {Pod: "web-1", Class: autoscaler.Missing, Reason: autoscaler.ReasonNoSample},
	}}}}
	r := New(d, Context{Verdict: func(_ int, pod string) (PodVerdict, bool) {
		lookUps[pod]++
		return PodVerdict{Reason: "NoSeries of " + pod}, pod == "web-0"
	}})
	if want := map[string]int{"web-0": 1, "web-1": 1}; !maps.Equal(lookUps, want) {
		t.Errorf("verdicts were looked up %v times, want %v", lookUps, want)
	}
	if pods := r.Metrics[0].Pods; pods[0].Reason != "NoSeries of web-0" || pods[0].Verdict == nil || pods[1].Verdict != nil {
		t.Errorf("got %+v, want the reason of web-0", pods)
	}
}
