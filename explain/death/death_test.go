package death_test

import (
	gocmp "cmp"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/endlog"
	"github.com/weir-metrics/weir/cluster/eventlog/event"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/explain/death"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestTranscripts runs the files in testdata. go test PKG -args -rewrite writes their output again.
// Times are relative to the end, which is at 12:00:00.
//
//	death [container=app] [exit=137] [reason=OOMKilled] [signal=9] [started=-10m] [ended=never] [missed=2] [phase=Failed] [deleted=30s]
//	      [gone] [unwatched] [node=gone|notready] [nodememory=8Gi] [podlimit=1Gi] [noevents] [nowords]
//	      [dropped]: the kubelet wrote no Event when the run started; [since=-10m]: from when on Events are known
//	    stop Evicted [DisruptionTarget's reason]: message       what the pod's status has
//	    message text                                             what the status has about the run
//	    container app [sidecar] [started=-5m] [limit=64Mi] [inforce=32Mi|none] [exit=143] [reason=Error]     of the pod
//	    child -5m [limit=container] [doubt=uncounted]                              an earlier kill, after which the run went on
//	    memory app -4m=40Mi -10s=63Mi, memory node -10s=6Gi      readings
//	    cpu app -10s=1500m
//	    event kubelet app Killing -1s [x3 since -5m]: message    on the pod, of a source and a container (- for none); weir
//	                                                             saw it once, or with "seen -5m -3m" also then
//	    nodeevent SystemOOM -1s
//	    kill pod [limit=pod] [slice=/kubepods] [processes=3] [id=c1] [whole] [process=java] [rss=187Mi]     what the agent read
//	         [inner] [numa] [logged] [doubt=late]
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return text(death.Decide(factsOf(t, d)))
		})
	})
}

// text writes an answer.
func text(d death.Death) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s, %s: %s\n", d.Cause, d.Confidence, d.Message)
	for _, e := range d.Evidence {
		fmt.Fprintf(&s, "  %s: %s\n", e.From, e.Fact)
	}
	if d.Before != nil && d.Before.Message != "" {
		fmt.Fprintf(&s, "  before: %s\n", d.Before.Message)
	}
	if d.Advice != "" {
		fmt.Fprintf(&s, "  do: %s\n", d.Advice)
	}
	return s.String()
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return noon.Add(d)
}

func quantity(text string) float64 { q := resource.MustParse(text); return q.AsApproximateFloat64() }

// attrs are key=value words.
type attrs map[string]string

func attributes(words []string) attrs {
	a := attrs{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		a[k] = v
	}
	return a
}

func (a attrs) limit(key string) (r cluster.Requirements) {
	if a[key] != "" {
		r.Set(metric.MemoryLimit, quantity(a[key]))
	}
	return r
}

func (a attrs) number(key string) (n int32) { fmt.Sscan(a[key], &n); return n }

func factsOf(t *testing.T, d *datadriven.TestData) death.Facts {
	t.Helper()
	words := []string{}
	for _, arg := range d.CmdArgs {
		words = append(words, arg.String())
	}
	a := attributes(words)
	has := func(flag string) bool { _, ok := a[flag]; return ok }
	pod := &cluster.Pod{
		PodRef: metric.PodRef{Namespace: "shop", Name: "web-1"}, UID: "u1", Node: "n1", Phase: cluster.Running, Spec: a.limit("podlimit"),
		Owner: &cluster.Owner{Kind: "StatefulSet", Name: "web"},
	}
	if a["phase"] != "" {
		pod.Phase = cluster.Phase(a["phase"])
	}
	if a["deleted"] != "" {
		pod.Deleted = moment(t, a["deleted"])
	}
	end := &endlog.End{
		Pod: pod, Container: a["container"], At: noon, Seen: noon.Add(time.Second), Missed: int(a.number("missed")), Gone: has("gone"), Unwatched: has("unwatched"),
		Node: endlog.NodeState{Known: a["node"] != "gone", Ready: a["node"] == ""},
	}
	if a["nodememory"] != "" {
		end.Node.Memory = quantity(a["nodememory"])
	}
	if end.Container != "" {
		end.Run = endlog.Run{ID: "c1", Ended: noon, Reason: a["reason"], ExitCode: a.number("exit"), Signal: a.number("signal")}
		if a["started"] != "" {
			end.Run.Started = moment(t, a["started"])
		}
		if a["ended"] == "never" {
			end.Run.Ended = time.Time{}
		}
		pod.Containers = append(pod.Containers, cluster.Container{Name: end.Container, State: cluster.StateWaiting})
	}
	f := death.Facts{End: end, Words: !has("nowords")}
	f.EventsSince = moment(t, gocmp.Or(a["since"], "-1h"))
	if has("noevents") {
		f.EventsUnread = "weir keeps no Events"
	}
	if !has("dropped") && a["started"] != "" {
		f.Events = append(f.Events, event.Event{Source: "kubelet", Part: end.Container, Reason: "Started", Count: 1, First: end.Run.Started, Last: end.Run.Started, Seen: []time.Time{end.Run.Started}})
	}
	points := history{}
	for _, line := range transcript.Lines(d.Input) {
		what, rest, _ := strings.Cut(line, " ")
		head, message, _ := strings.Cut(rest, ": ")
		words := strings.Fields(head)
		switch what {
		case "stop":
			pod.Stop = &cluster.PodStop{Reason: strings.Trim(words[0], "-"), Message: message}
			if len(words) > 1 {
				pod.Stop.Disruption = words[1]
			}
		case "message":
			end.Run.Message = rest
		case "container":
			c := attributes(words[1:])
			container := cluster.Container{Name: words[0], Spec: c.limit("limit"), State: cluster.StateRunning}
			if _, ok := c["sidecar"]; ok {
				container.Role = cluster.Sidecar
			}
			if c["started"] != "" {
				container.StartedAt = moment(t, c["started"])
			}
			if c["exit"] != "" {
				container.State = cluster.StateTerminated
				container.Previous = &cluster.PreviousRun{EndedAt: noon, ExitCode: c.number("exit"), EndReason: c["reason"]}
			}
			if i := slices.IndexFunc(pod.Containers, func(o cluster.Container) bool { return o.Name == words[0] }); i >= 0 {
				pod.Containers[i].Spec, pod.Containers[i].Role = container.Spec, container.Role
			} else {
				pod.Containers = append(pod.Containers, container)
			}
			if c["inforce"] != "" {
				applied := cluster.Applied{Container: words[0], ID: metric.MemoryLimit, Spec: quantity(c["limit"]), Value: -1}
				if c["inforce"] != "none" {
					applied.Value = quantity(c["inforce"])
				}
				end.Resize = &cluster.Resize{State: "Deferred", Applied: []cluster.Applied{applied}}
			}
		case "memory", "cpu":
			points.add(t, what, words)
		case "event":
			f.Events = append(f.Events, parseEvent(t, words[0], words[1], words[2], words[3:], message))
		case "kill":
			k := attributes(words[1:])
			end.Kill = &endlog.Kill{Scope: endlog.Scope(words[0]), Limit: endlog.Scope(k["limit"]), Slice: metric.CgroupPath(k["slice"]), ContainerID: metric.ContainerID(k["id"]), Processes: max(1, uint64(k.number("processes"))), After: noon.Add(-time.Second), At: noon}
			_, end.Kill.Whole = k["whole"]
			_, end.Kill.Inner = k["inner"]
			_, end.Kill.NUMA = k["numa"]
			_, end.Kill.Logged = k["logged"]
			end.Kill.Doubt = endlog.Doubt(k["doubt"])
			if k["process"] != "" {
				end.Kill.Process = &endlog.Process{Name: k["process"], PID: 4711, RSS: uint64(quantity("0" + k["rss"]))}
			}
		case "child":
			f.Child = &endlog.Kill{Scope: endlog.Child, Limit: endlog.Scope(attributes(words[1:])["limit"]), Doubt: endlog.Doubt(attributes(words[1:])["doubt"]), ContainerID: "c1", Processes: 1, After: moment(t, words[0]).Add(-time.Second), At: moment(t, words[0])}
		case "nodeevent":
			f.NodeEvents = append(f.NodeEvents, parseEvent(t, "kubelet", "-", words[0], words[1:], message))
		default:
			d.Fatalf(t, "%q: unknown line", line)
		}
	}
	end.Before = death.Measure(points.read, end)
	return f
}

// parseEvent parses "-1s" and "-1s x3 since -5m".
func parseEvent(t *testing.T, source, part, reason string, when []string, message string) event.Event {
	t.Helper()
	e := event.Event{Reason: reason, Message: message, Source: source, Part: strings.Trim(part, "-"), ObjectUID: "u1", Count: 1, Last: moment(t, when[0]), Seen: []time.Time{moment(t, when[0])}}
	if e.First = e.Last; len(when) > 3 {
		fmt.Sscanf(when[1], "x%d", &e.Count)
		e.First = moment(t, when[3])
	}
	if i := slices.Index(when, "seen"); i >= 0 {
		for _, at := range when[i+1:] {
			e.Seen = append(e.Seen, moment(t, at))
		}
	}
	return e
}

// history has points by metric and by container; "node" is the node.
type history map[string][]endlog.Reading

func (h history) add(t *testing.T, what string, words []string) {
	t.Helper()
	for _, word := range words[1:] {
		at, value, _ := strings.Cut(word, "=")
		amount := quantity(value)
		if what == "cpu" {
			amount *= 1e9
		}
		h[what+" "+words[0]] = append(h[what+" "+words[0]], endlog.Reading{At: moment(t, at), Value: amount})
	}
}

func (h history) read(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
	key, what := "node", map[metric.ID]string{metric.MemoryWorkingSet: "memory ", metric.CPUUsageRate: "cpu "}[id]
	if e.Kind == metric.Container {
		key = e.Name
	}
	return func(yield func(time.Time, float64) bool) {
		for _, r := range h[what+key] {
			if !r.At.Before(from) && !r.At.After(to) && !yield(r.At, r.Value) {
				return
			}
		}
	}
}

// TestEveryCauseIsShown checks that each cause is the result of a transcript, and that the README has a row for each
// cause, and for no other.
func TestEveryCauseIsShown(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(body)
	}
	for _, c := range death.Causes() {
		if !strings.Contains(all.String(), "----\n"+string(c)+", ") {
			t.Errorf("no transcript ends in %s: write one", c)
		}
		if !strings.Contains(string(readme), "| `"+string(c)+"` |") {
			t.Errorf("README.md has no row for %s", c)
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(string(readme), -1) {
		if !slices.Contains(death.Causes(), death.Cause(row[1])) {
			t.Errorf("README.md has a row for %s, which is not a cause", row[1])
		}
	}
}

// TestEveryLimitHasACause checks that a kill at each limit has a cause of its own, and a sentence.
func TestEveryLimitHasACause(t *testing.T) {
	p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1", Containers: []cluster.Container{{Name: "app"}}}
	limits := map[death.Cause]endlog.Scope{}
	for _, limit := range endlog.Limits {
		d := death.Decide(death.Facts{End: &endlog.End{Pod: p, Container: "app", At: noon, Run: endlog.Run{ExitCode: 137}, Kill: &endlog.Kill{Scope: limit, Limit: limit, Logged: true, Processes: 1, At: noon, After: noon}}})
		if other, known := limits[d.Cause]; known || d.Cause == death.MemoryKill {
			t.Errorf("limit %s has the cause %s, as %q has: %s", limit, d.Cause, other, d.Message)
		}
		limits[d.Cause] = limit
	}
}

// TestReasonOfTheAgent checks that the reason is known that the agent writes.
func TestReasonOfTheAgent(t *testing.T) {
	if cluster.ByAgent != execute.ConditionReason {
		t.Errorf("the agent writes %q, and %q is known", execute.ConditionReason, cluster.ByAgent)
	}
}

// FuzzParseEvicted checks that what is read of a message is in it, and is bounded.
func FuzzParseEvicted(f *testing.F) {
	for _, message := range []string{
		"The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. Container app was using 300Mi, request is 0, has larger consumption of memory. ",
		"The node had condition: [DiskPressure]. ", `Usage of EmptyDir volume "tmp" exceeds the limit "1Gi". `,
		`Container app exceeded its local ephemeral storage limit "1Gi". `, "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
		"The node was low on resource: memory. Container a.b was using 1.5Gi, request is 1.0Gi, has larger consumption of memory.", "",
	} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		e, ok := death.ParseEvicted(message)
		if !ok {
			if e.Resource != "" || e.Limit != "" || e.Above != nil {
				t.Errorf("%q is refused, and read as %+v", message, e)
			}
			return
		}
		if (e.Resource == "") == (e.Limit == "") || len(e.Above) > 10 {
			t.Errorf("%q is read as %+v", message, e)
		}
		for _, part := range append([]string{e.Resource, e.Limit, e.Threshold, e.Available}, names(e.Above)...) {
			if !strings.Contains(message, part) {
				t.Errorf("%q is read as %+v: %q is not in it", message, e, part)
			}
		}
	})
}

func names(all []death.AboveRequest) (parts []string) {
	for _, a := range all {
		parts = append(parts, a.Name, a.Usage, a.Request)
	}
	return parts
}

// TestUsageOutlivesTheContainer checks that what a pod used is measured after it is gone, from the memory
// sink as it is.
func TestUsageOutlivesTheContainer(t *testing.T) {
	sink := memory.New(memory.Options{})
	for i, used := range []float64{10, 40, 30, 0} {
		at := noon.Add(time.Duration(i-3) * 15 * time.Second)
		b := &metric.Batch{Source: "kubelet:resource", Node: "n1", Interval: 15 * time.Second, Resolution: time.Millisecond, Began: at, Ended: at}
		for entity, v := range map[metric.Entity]float64{
			{Kind: metric.Node, Node: "n1"}: 1000,
			{Kind: metric.Container, Node: "n1", Namespace: "shop", Pod: "web", Name: "app"}: used,
		} {
			if v > 0 {
				s := b.Add(entity)
				s.Values.Set(metric.MemoryWorkingSet, v)
				s.Times[metric.Memory], s.Reasons[metric.Memory] = at.UnixNano(), metric.Measured
			}
		}
		if err := sink.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	history := func(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64] {
		return func(yield func(time.Time, float64) bool) {
			for _, p := range sink.Snapshot().History(e, id, from, to) {
				if !yield(time.Unix(0, p.Time), p.Value) {
					return
				}
			}
		}
	}
	pod := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1", Containers: []cluster.Container{{Name: "app"}}}
	got := death.Measure(history, &endlog.End{Pod: pod, At: noon, Gone: true})
	at := func(ago time.Duration, v float64) endlog.Reading {
		return endlog.Reading{At: noon.Add(-ago), Value: v}
	}
	want := endlog.Usage{Memory: []endlog.Trend{
		{Kind: "container", Name: "app", First: at(45*time.Second, 10), Highest: at(30*time.Second, 40), Last: at(15*time.Second, 30)},
		{Kind: "node", Name: "n1", First: at(45*time.Second, 1000), Highest: at(45*time.Second, 1000), Last: at(0, 1000)},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-5, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// ends is an EndReader of a few.
type ends []*endlog.End

func (e ends) In(metric.Namespace) []*endlog.End { return e }
func (ends) Since() time.Time                    { return noon.Add(-2 * time.Hour) }
func (ends) Size() (kept, dropped int)           { return 0, 0 }

// TestRecent checks the sentence on what ended in a pod, and which ends a report selects.
func TestRecent(t *testing.T) {
	end := func(pod string, node metric.NodeName, owner string, code int32) *endlog.End {
		p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(pod)}, Node: node, Owner: &cluster.Owner{Kind: "Job", Name: owner}, Containers: []cluster.Container{{Name: "app"}}}
		return &endlog.End{Pod: p, Container: "app", At: noon.Add(-4 * time.Minute), Run: endlog.Run{ExitCode: code, Ended: noon}}
	}
	all := ends{end("a", "n1", "x", 3), end("a", "n1", "x", 0), end("b", "n2", "x", 4), end("c", "n2", "y", 5)}
	r := death.NewReport(death.Query{Namespace: "shop", Pod: "a"}, all, nil, noon)
	if got, want := r.Recent(), "1 death in the last hour, the last one 4m ago. container app: exited with code 3. `weir explain death shop/a` has the evidence."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r = death.NewReport(death.Query{Namespace: "shop", Pod: "d"}, all, nil, noon)
	if got := r.Recent(); got != "" {
		t.Errorf("nothing ended in the pod: got %q", got)
	}
	for want, q := range map[int]death.Query{2: {Node: "n2"}, 1: {Workload: cluster.Owner{Kind: "Job", Name: "y"}}, 0: {Workload: cluster.Owner{Kind: "Job", Name: "z"}}} {
		if got := len(death.NewReport(q, all, nil, noon).Deaths); got != want {
			t.Errorf("%+v selects %d ends, want %d", q, got, want)
		}
	}
}

// TestKillOfAChild checks that the end of a run is decided with the kill of a child that an agent found before.
func TestKillOfAChild(t *testing.T) {
	p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: "web"}, Node: "n1", Containers: []cluster.Container{{Name: "app"}}}
	child := &endlog.Kill{Scope: endlog.Child, ContainerID: "c1", Processes: 1, At: noon.Add(-5 * time.Minute), After: noon.Add(-5 * time.Minute)}
	end := func(id metric.ContainerID) *endlog.End {
		return &endlog.End{Pod: p, Container: "app", At: noon, Run: endlog.Run{ID: id, Ended: noon, ExitCode: 137, Reason: "OOMKilled"}}
	}
	r := death.NewReport(death.Query{Namespace: "shop"}, ends{end("c1"), end("c2"), {Pod: p, Container: "app", At: child.At, Run: endlog.Run{ID: "c1"}, Kill: child}}, nil, noon)
	var got []string
	for _, d := range r.Deaths {
		got = append(got, fmt.Sprint(d.Cause, ", ", d.Confidence))
	}
	if diff := cmp.Diff([]string{"ChildKilled, undecided", "NodeShortage, likely", "ChildKilled, certain"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
