package hpaevents

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// TestEventThrottle runs the transcripts of testdata/throttle:
//
//	book [burst=25]
//	    a new eventThrottle
//	look at=0s [follower] [refused]
//	    web pods=3 web-1:NodeTimeout web-2:FirstSample
//	    the pods of an autoscaler, and why some have no numbers; prints the Events.
//	    A follower is not the leader; with refused, every write fails
func TestEventThrottle(t *testing.T) {
	datadriven.Walk(t, "testdata/throttle", func(t *testing.T, path string) {
		var b *eventThrottle
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "book":
				limit := burst
				if d.HasArg("burst") {
					d.ScanArgs(t, "burst", &limit)
				}
				b = newEventThrottle(limit)
				return ""
			case "look":
				return look(t, d, b)
			}
			d.Fatalf(t, "unknown command")
			return ""
		})
	})
}

func look(t *testing.T, d *datadriven.TestData, b *eventThrottle) string {
	var offset string
	d.ScanArgs(t, "at", &offset)
	now, err := transcript.Moment(offset)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	gaps := map[metric.PodRef]missingPod{}
	var checks []podCheck
	for _, line := range transcript.Lines(d.Input) {
		checks = append(checks, parseCheck(t, line, gaps))
	}
	var out strings.Builder
	for _, n := range b.decideEvents(now, checks, !d.HasArg("follower"), func(p *cluster.Pod) missingPod { return gaps[p.PodRef] }) {
		if n.count > 1 {
			fmt.Fprintf(&out, "%s %s (%d times since %v): %s\n", n.hpa, n.reason(), n.count, n.first.Sub(transcript.Epoch), n.note)
		} else {
			fmt.Fprintf(&out, "%s %s: %s\n", n.hpa, n.reason(), n.note)
		}
		if d.HasArg("refused") {
			b.retract(n)
		}
	}
	if out.Len() == 0 {
		return "nothing is said\n"
	}
	return out.String()
}

// parseCheck parses a line such as "web pods=3 web-1:NodeTimeout web-2:TooYoung", and stores why
// pods have no numbers. web-[1-60]:Stale means sixty pods.
func parseCheck(t *testing.T, line string, gaps map[metric.PodRef]missingPod) podCheck {
	t.Helper()
	words := strings.Fields(line)
	s := podCheck{hpa: &hpaInfo{NamespacedName: types.NamespacedName{Namespace: "shop", Name: words[0]}, uid: types.UID(words[0]), resource: true, pods: true}}
	for _, w := range words[1:] {
		if n, ok := strings.CutPrefix(w, "pods="); ok {
			s.running, _ = strconv.Atoi(n)
			continue
		}
		name, cause, _ := strings.Cut(w, ":")
		reason, ok := metric.ParseReason(cause)
		if !ok {
			t.Fatalf("%q: no such reason", w)
		}
		for _, pod := range podsOf(name) {
			p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "shop", Name: metric.PodName(pod)}, UID: metric.PodUID("uid-" + pod)}
			s.missing = append(s.missing, p)
			gaps[p.PodRef] = missingPod{
				pod: p.Name, reason: reason, sentence: explain.Message(reason, metric.CPU, metric.Evidence{}), severity: reason.Severity(),
			}
		}
	}
	return s
}

func podsOf(pattern string) (names []string) {
	prefix, numbers, ok := strings.Cut(pattern, "[")
	if !ok {
		return []string{pattern}
	}
	var from, to int
	if _, err := fmt.Sscanf(numbers, "%d-%d]", &from, &to); err != nil {
		panic(err)
	}
	for n := from; n <= to; n++ {
		names = append(names, fmt.Sprintf("%s%03d", prefix, n))
	}
	return names
}

// TestEventThrottleForgets checks that records of deleted autoscalers, and of those without missing
// pods, are deleted.
func TestEventThrottleForgets(t *testing.T) {
	b := newEventThrottle(burst)
	gaps := map[metric.PodRef]missingPod{}
	cause := func(p *cluster.Pod) missingPod { return gaps[p.PodRef] }
	ill := []podCheck{parseCheck(t, "web pods=1 web-1:NodeTimeout", gaps), parseCheck(t, "api pods=1 api-1:NodeTimeout", gaps)}
	well := []podCheck{parseCheck(t, "web pods=1", gaps)}
	b.decideEvents(transcript.Epoch, ill, true, cause)
	if got := len(b.records); got != 2 {
		t.Fatalf("got %d records, want 2", got)
	}
	if got := len(b.decideEvents(transcript.Epoch.Add(time.Minute), ill, true, cause)); got != 2 {
		t.Fatalf("got %d notices, want 2", got)
	}
	b.decideEvents(transcript.Epoch.Add(2*time.Minute), well, true, cause) // api was deleted, and web has no missing pods any more
	if got := len(b.records); got != 1 {
		t.Errorf("got %d records, want web's", got)
	}
	b.decideEvents(transcript.Epoch.Add(10*time.Minute), well, true, cause)
	if got := len(b.records); got != 0 {
		t.Errorf("got %d records, want none", got)
	}
}
