package autoscaler

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/cluster"
)

// TestDerivation prints complete decisions: see testdata/derivation. The commands are:
//
//	spec [scale-to-zero]
//	decide at=TIME replicas=N [first] [fails]
//
// spec drops all state and uses the specification below it. decide with first drops the last
// decision. The lines of decide give the input: pods (the name, and then the differences from a pod
// with a container app that requests 1 CPU and has been ready for an hour) and values of metrics
// (metric INDEX values). The decision is carried out, unless the write fails.
func TestDerivation(t *testing.T) {
	datadriven.Walk(t, "testdata/derivation", func(t *testing.T, path string) {
		var (
			settings Settings
			spec     *autoscalingv2.HorizontalPodAutoscalerSpec
			done     Completion
		)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "spec":
				settings, done = DefaultSettings(), Completion{}
				spec = &autoscalingv2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				}
				if err := yaml.UnmarshalStrict([]byte(d.Input), spec); err != nil {
					d.Fatalf(t, "parse the specification: %v", err)
				}
				Default(spec)
				settings.ScaleToZero = d.HasArg("scale-to-zero")
				err := Validate(spec, settings)
				if err == nil {
					return "ok\n"
				}
				var mistakes utilerrors.Aggregate
				if !errors.As(err, &mistakes) {
					d.Fatalf(t, "an error of another kind: %v", err)
				}
				var b strings.Builder
				for _, m := range mistakes.Errors() {
					fmt.Fprintln(&b, m)
				}
				return b.String()
			case "decide":
				if d.HasArg("first") {
					done = Completion{}
				}
				in := &Input{Settings: &settings, Object: types.NamespacedName{Namespace: "shop", Name: "web"}, Spec: spec, Status: &done.Status, Memory: done.Memory}
				if err := fixture(in, d); err != nil {
					d.Fatalf(t, "%v", err)
				}
				decision := Decide(in)
				var failed error
				if d.HasArg("fails") {
					failed = errors.New("the API server is away")
				}
				done = decision.Conclude(failed)
				return describeDecision(decision, &done)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

// fixture sets the input that a decide command describes.
func fixture(in *Input, d *datadriven.TestData) error {
	var offset, replicas string
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "at":
			offset = a.Vals[0]
		case "replicas":
			replicas = a.Vals[0]
		}
	}
	after, err := time.ParseDuration(offset)
	if err != nil {
		return err
	}
	in.Now = t0.Add(after)
	n, err := strconv.Atoi(replicas)
	if err != nil {
		return err
	}
	in.Scale = Scale{SpecReplicas: int32(n), StatusReplicas: int32(n), Selector: "app=web"}
	readings := map[int]*Reading{}
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		if words[0] == "metric" {
			if err := value(readings, words[1:]); err != nil {
				return err
			}
			continue
		}
		if err := pod(in, readings, words); err != nil {
			return fmt.Errorf("%s: %w", words[0], err)
		}
	}
	in.ReadMetric = func(i int) Reading {
		if r := readings[i]; r != nil {
			return *r
		}
		return Reading{Err: errors.New("the metrics API has nothing")}
	}
	return nil
}

func value(readings map[int]*Reading, words []string) error {
	i, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	r := &Reading{}
	for _, w := range words[1:] {
		q, err := resource.ParseQuantity(w)
		if err != nil {
			return err
		}
		r.Values = append(r.Values, q.MilliValue())
	}
	readings[i] = r
	return nil
}

// pod adds a pod with its sample of metric 0. For a stranger it adds only the sample.
func pod(in *Input, readings map[int]*Reading, words []string) error {
	p := PodInput{
		Name: words[0], Phase: cluster.Running, Started: in.Now.Add(-time.Hour),
		Ready: cluster.ReadyTrue, ReadySince: in.Now.Add(-time.Hour),
		Containers: []ContainerInput{{Name: "app", Requests: Requests{CPU: MilliQuantity{1000, true}}}},
	}
	s := PodSample{Pod: p.Name, At: in.Now.Add(-20 * time.Second), Window: 15 * time.Second}
	sampled, outsider := false, false
	for _, w := range words[1:] {
		key, val, _ := strings.Cut(w, "=")
		milli, age := int64(0), time.Duration(0)
		switch key {
		case "use", "request":
			q, err := resource.ParseQuantity(val)
			if err != nil {
				return err
			}
			milli = q.MilliValue()
		case "age", "ready", "unready":
			var err error
			if age, err = time.ParseDuration(val); err != nil {
				return err
			}
		}
		switch key {
		case "use":
			s.Milli, sampled = milli, true
		case "request":
			p.Containers[0].Requests.CPU.Milli = milli
		case "unrequested":
			p.Containers[0].Requests.CPU = MilliQuantity{}
		case "age":
			p.Started = in.Now.Add(-age)
		case "ready":
			p.ReadySince = in.Now.Add(-age)
		case "unready":
			p.Ready, p.ReadySince = cluster.ReadyFalse, in.Now.Add(-age)
		case "terminating":
			p.Terminating = true
		case "stranger":
			outsider = true
		default:
			p.Phase = cluster.Phase(w)
		}
	}
	if !outsider {
		in.Pods = append(in.Pods, p)
	}
	r := readings[0]
	if r == nil {
		r = &Reading{At: s.At}
		readings[0] = r
	}
	if sampled {
		r.Samples = append(r.Samples, s)
	}
	return nil
}

// describeDecision returns a decision with its derivation as text.
func describeDecision(d *Decision, done *Completion) string {
	var b strings.Builder
	verb := "stays at"
	if d.Rescale {
		verb = "to"
	}
	fmt.Fprintf(&b, "%d %s %d", d.Current, verb, d.Desired)
	if d.RescaleReason != "" {
		fmt.Fprintf(&b, ": %s", d.RescaleReason)
	}
	b.WriteByte('\n')
	for i := range d.Metrics {
		describeMetric(&b, &d.Metrics[i], i == d.Chosen)
	}
	for _, s := range d.Steps {
		fmt.Fprintf(&b, "  step %v: %d -> %d", s.Kind, s.From, s.To)
		if s.Limit != 0 {
			fmt.Fprintf(&b, ", limit %d", s.Limit)
		}
		if s.Window != 0 {
			fmt.Fprintf(&b, ", window %v", s.Window)
		}
		if !s.At.IsZero() {
			fmt.Fprintf(&b, ", of %v ago", d.At.Sub(s.At))
		}
		if p := s.Policy; p != nil {
			fmt.Fprintf(&b, ", policy %d %s, added %d, removed %d", p.Value, p.Type, s.Added, s.Removed)
		}
		b.WriteByte('\n')
	}
	for _, c := range done.Status.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, e := range done.Events {
		fmt.Fprintf(&b, "  event %s %s: %s\n", e.Type, e.Reason, e.Message)
	}
	if done.Err != nil {
		fmt.Fprintf(&b, "  error: %v\n", done.Err)
	}
	return b.String()
}

func describeMetric(b *strings.Builder, m *MetricDecision, chosen bool) {
	mark := " "
	if chosen {
		mark = "*"
	}
	fmt.Fprintf(b, "%s %v %s: ", mark, m.Type, m.Name)
	switch {
	case m.Err != nil:
		fmt.Fprintf(b, "%s: %v\n", m.Reason, m.Err)
	case m.Percent:
		fmt.Fprintf(b, "%d (%v), average %d, %d%% of %d%%, ratio %.4g of %d", m.Proposal, m.Outcome, m.Usage, m.Utilization, m.Target, m.Ratio, m.Count)
	default:
		fmt.Fprintf(b, "%d (%v), %d of %d, ratio %.4g of %d", m.Proposal, m.Outcome, m.Usage, m.Target, m.Ratio, m.Count)
	}
	if m.Recounted {
		fmt.Fprintf(b, ", recounted %.4g of %d", m.RecountedRatio, m.RecountedPods)
	}
	if m.Err == nil {
		b.WriteByte('\n')
	}
	for _, p := range m.Pods {
		fmt.Fprintf(b, "    %s %v", p.Pod, p.Class)
		if p.Reason != ReasonReady {
			fmt.Fprintf(b, " (%v)", p.Reason)
		}
		if p.HasSample {
			fmt.Fprintf(b, " uses %d", p.Usage)
		}
		if m.Percent {
			fmt.Fprintf(b, " of %d", p.Request)
		}
		if p.HasAssumed {
			fmt.Fprintf(b, ", assumed to use %d", p.Assumed)
		}
		b.WriteByte('\n')
	}
}
