package resize

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
)

// begin is the time of the first reading of every container.
var begin = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// fixture is a pod with the usage of its containers.
type fixture struct {
	pod  *PodResources
	used map[string][]UsagePoint // by container and resource
}

// TestTranscripts runs testdata. A transcript lists pods, their containers and readings, one on each line. Then
// it prints what is recommended (recommend) or refused (check).
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w := &fixture{used: map[string][]UsagePoint{}}
			var changes []ResourceChange
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(line)
				switch words[0] {
				case "pod":
					w.readPod(t, words[1:])
				case "container":
					w.readContainer(t, words[1:])
				case "used":
					w.readUsed(t, words[1:])
				case "change":
					changes = append(changes, readChanges(t, words[1:])...)
				default:
					t.Fatalf("%s: what is %q?", d.Pos, line)
				}
			}
			switch d.Cmd {
			case "recommend":
				return w.recommend(t, d)
			case "check":
				return w.check(t, changes)
			}
			t.Fatalf("%s: what is %q?", d.Pos, d.Cmd)
			return ""
		})
	})
}

func parse(t *testing.T, r Resource, text string) int64 {
	t.Helper()
	q, err := resource.ParseQuantity(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return quantityValue(r, &q)
}

// amountsOf parses "cpu:100m,memory:64Mi".
func amountsOf(t *testing.T, text string) (a Amounts) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		name, q, _ := strings.Cut(part, ":")
		*a.of(Resource(name)) = Of(parse(t, Resource(name), q))
	}
	return a
}

func (w *fixture) readPod(t *testing.T, words []string) {
	t.Helper()
	w.pod = &PodResources{Namespace: "shop", Name: words[0], Node: "n1", Phase: string(cluster.Running)}
	for _, word := range words[1:] {
		key, v, _ := strings.Cut(word, "=")
		switch key {
		case "phase":
			w.pod.Phase = v
		case "static":
			w.pod.Static = true
		case "windows":
			w.pod.Windows = true
		case "old-kubelet":
			w.pod.OldKubelet = true
		case "terminating":
			w.pod.Terminating = true
		case "resizing":
			w.pod.Resizing = v
		case "fixed":
			w.pod.PodLevel.Fixed = true
		case "requests":
			w.pod.PodLevel.Set, w.pod.PodLevel.Requests = true, amountsOf(t, v)
		case "limits":
			w.pod.PodLevel.Set, w.pod.PodLevel.Limits = true, amountsOf(t, v)
		default:
			t.Fatalf("what is %q of a pod?", word)
		}
	}
}

func (w *fixture) readContainer(t *testing.T, words []string) {
	t.Helper()
	c := ContainerResources{Name: words[0], Running: true}
	for _, word := range words[1:] {
		key, v, _ := strings.Cut(word, "=")
		switch key {
		case "init":
			c.Role, c.Running = cluster.Init, false
		case "sidecar":
			c.Role = cluster.Sidecar
		case "running":
			c.Running = true
		case "stopped":
			c.Running = false
		case "requests":
			c.Requests = amountsOf(t, v)
		case "limits":
			c.Limits = amountsOf(t, v)
		case "restarts":
			c.RestartsFor = append(c.RestartsFor, Resource(v))
		default:
			t.Fatalf("what is %q of a container?", word)
		}
	}
	w.pod.Containers = append(w.pod.Containers, c)
}

// ownName is written for the pod itself, whose container has no name.
const ownName = "(pod)"

func containerName(word string) string {
	if word == ownName {
		return ""
	}
	return word
}

// readUsed parses "app cpu 15s 40m*59 62m": a time between readings, and the readings.
func (w *fixture) readUsed(t *testing.T, words []string) {
	t.Helper()
	every, err := time.ParseDuration(words[2])
	if err != nil {
		t.Fatal(err)
	}
	r := Resource(words[1])
	key := containerName(words[0]) + "/" + words[1]
	for _, word := range words[3:] {
		text, times, _ := strings.Cut(word, "*")
		n := 1
		if times != "" {
			if n, err = strconv.Atoi(times); err != nil {
				t.Fatal(err)
			}
		}
		v, err := strconv.ParseFloat(text, 64) // ParseFloat also reads absurd values such as NaN
		if err != nil {
			if v = float64(parse(t, r, text)); r == CPU {
				v /= 1000
			}
		}
		for range n {
			w.used[key] = append(w.used[key], UsagePoint{At: begin.Add(time.Duration(len(w.used[key])) * every), Value: v})
		}
	}
}

// readChanges parses "app requests=cpu:100m limits=cpu:200m".
func readChanges(t *testing.T, words []string) (changes []ResourceChange) {
	t.Helper()
	for _, word := range words[1:] {
		key, v, _ := strings.Cut(word, "=")
		a := amountsOf(t, v)
		for _, r := range Resources() {
			if !a.Get(r).Set {
				continue
			}
			c := ResourceChange{Container: containerName(words[0]), Resource: r, Request: a.Get(r)}
			if key == "limits" {
				c.Request, c.Limit = c.Limit, c.Request
			}
			changes = append(changes, c)
		}
	}
	return changes
}

func (w *fixture) options(t *testing.T, d *datadriven.TestData) Options {
	t.Helper()
	o := Defaults()
	o.Up, o.Limits = d.HasArg("up"), d.HasArg("limits")
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			continue
		}
		var err error
		switch arg.Key {
		case "percentile":
			o.CPU.Percentile, err = strconv.ParseFloat(arg.Vals[0], 64)
		case "headroom":
			o.CPU.Headroom, err = strconv.ParseFloat(arg.Vals[0], 64)
		case "min-history":
			o.MinHistory, err = time.ParseDuration(arg.Vals[0])
		case "resources":
			o.Resources = []Resource{Resource(arg.Vals[0])}
		default:
			t.Fatalf("%s: what is %s?", d.Pos, arg.Key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	return o
}

func (w *fixture) recommend(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	rec := Recommend(w.pod, func(c string, r Resource) []UsagePoint { return w.used[c+"/"+string(r)] }, w.options(t, d))
	for _, a := range rec.Requests {
		now, then := "-", ""
		if a.Request != nil {
			now = a.Request.String()
		}
		if a.Proposed != nil {
			then = " -> " + a.Proposed.String()
		}
		if a.ProposedLimit != nil {
			then += " limit " + a.ProposedLimit.String()
		}
		fmt.Fprintf(&out, "%s %s %s%s %s: %s\n", cmp.Or(a.Container, ownName), a.Resource, now, then, a.Reason, a.Message)
	}
	fmt.Fprintf(&out, "%s, frees %s cpu, %s memory\n", rec.QoS, rec.Frees.CPU.String(), rec.Frees.Memory.String())
	for _, n := range rec.Notes {
		fmt.Fprintf(&out, "note: %s\n", n)
	}
	// Check must allow every recommendation, and no recommendation may change the class.
	refusals, err := Check(w.pod, rec.Changes())
	if err != nil || len(rec.Changes()) > 0 && len(refusals) > 0 {
		t.Errorf("%s: recommended is what is refused: %v %v", d.Pos, refusals, err)
	}
	return out.String()
}

func (w *fixture) check(t *testing.T, changes []ResourceChange) string {
	refusals, err := Check(w.pod, changes)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var out strings.Builder
	for _, r := range refusals {
		fmt.Fprintf(&out, "%s: %s\n", r.Reason, r.Message)
	}
	if out.Len() == 0 {
		return "in place\n"
	}
	return out.String()
}
