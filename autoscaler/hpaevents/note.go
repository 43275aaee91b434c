package hpaevents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

const (
	// noteLimit is how long the API server lets an Event's note be, in bytes.
	noteLimit = 1024
	// mostNames is how many pods are named for each reason.
	mostNames = 10
)

// gapOf returns why a pod has no CPU or memory, as r says. What it says in words
// must stay the same while the reason does, and be fit for every reader of the
// namespace: so the evidence, with its times and addresses, is left to whoever
// asks.
func gapOf(pod metric.PodName, r explain.Ruling) gap {
	g := gap{pod: pod, reason: r.Reason, words: r.Reason.Sentence(metric.CPU, metric.Evidence{})}
	if r.Container != "" {
		g.words = fmt.Sprintf("container %s: %s", r.Container, g.words)
	}
	switch {
	case r.Served:
		g.severity = metric.None
	case r.Reason.Layer() == metric.LayerIdentity && r.Reason.Severity() == metric.None:
		g.severity = metric.Temporary // to turn a sample away is no fault, but it was all there was
	default:
		g.severity = r.Reason.Severity()
	}
	return g
}

// cause is the pods that lack numbers for one reason.
type cause struct {
	reason metric.Reason
	words  string
	pods   []string
}

// causesOf sorts gaps by cause, the one with the most pods first.
func causesOf(gaps []gap) []*cause {
	var causes []*cause
	for i := range gaps {
		g := &gaps[i]
		n := slices.IndexFunc(causes, func(c *cause) bool { return c.reason == g.reason && c.words == g.words })
		if n < 0 {
			n = len(causes)
			causes = append(causes, &cause{reason: g.reason, words: g.words})
		}
		causes[n].pods = append(causes[n].pods, string(g.pod))
	}
	for _, c := range causes {
		slices.Sort(c.pods)
	}
	slices.SortStableFunc(causes, func(x, y *cause) int {
		return cmp.Or(cmp.Compare(len(y.pods), len(x.pods)), cmp.Compare(x.reason, y.reason), strings.Compare(x.words, y.words))
	})
	return causes
}

// missingNote says which of an autoscaler's running pods have no numbers. Of
// others, beside gaps, the reasons were not looked up.
func missingNote(namespace metric.Namespace, running int, gaps []gap, others int) string {
	lacking := len(gaps) + others
	note := fmt.Sprintf("%d of %d pods %s no CPU or memory. ", lacking, running, plural(lacking, "has", "have"))
	if running == 1 {
		note = "The only pod has no CPU or memory. "
	}
	tail := ". Ask: kubectl weir explain namespace " + string(namespace)
	// The last words may be needed to say that there was no room for more.
	room := noteLimit - len(tail) - len("; 9999999 more")
	left, sep := lacking, ""
	for _, c := range causesOf(gaps) {
		text, named := c.text(room - len(note) - len(sep))
		if text == "" {
			break
		}
		note += sep + text
		left -= named
		sep = "; "
	}
	if left > 0 {
		note += fmt.Sprintf("%s%d more", sep, left)
	}
	return note + tail
}

// text says a cause and names its pods in at most limit bytes; empty if not even
// one fits. Those counted as "more" are among the pods returned.
func (c *cause) text(limit int) (text string, pods int) {
	text = fmt.Sprintf("%v (%s): ", c.reason, c.words)
	limit -= len(" and 9999999 more")
	for i, name := range c.pods {
		sep := ""
		if i > 0 {
			sep = ", "
		}
		if i == mostNames || len(text)+len(sep)+len(name) > limit {
			if i == 0 {
				return "", 0
			}
			return fmt.Sprintf("%s and %d more", text, len(c.pods)-i), len(c.pods)
		}
		text += sep + name
	}
	return text, len(c.pods)
}

// completeNote says that the pods have their numbers.
func completeNote(pods int) string {
	if pods == 1 {
		return "The pod has CPU and memory again."
	}
	return fmt.Sprintf("All %d pods have CPU and memory again.", pods)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
