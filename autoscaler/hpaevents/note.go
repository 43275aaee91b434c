package hpaevents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

const (
	// noteLimit is the API server's limit on the length of an Event's note, in bytes.
	noteLimit = 1024
	// maxNames is the number of pods that are named for each reason.
	maxNames = 10
)

// newMissingPod returns why a pod has no CPU or memory. The sentence must stay the same as long as
// the reason does, and every reader of the namespace may see it. It therefore has no evidence with
// times and addresses.
func newMissingPod(pod metric.PodName, r explain.Outcome) missingPod {
	g := missingPod{pod: pod, reason: r.Reason, sentence: explain.Message(r.Reason, metric.CPU, metric.Evidence{})}
	if r.Container != "" {
		g.sentence = fmt.Sprintf("container %s: %s", r.Container, g.sentence)
	}
	switch {
	case r.Served:
		g.severity = metric.None
	case r.Reason.Layer() == metric.LayerIdentity && r.Reason.Severity() == metric.None:
		g.severity = metric.Temporary // a rejected sample is harmless if there is another one, but this pod has no other
	default:
		g.severity = r.Reason.Severity()
	}
	return g
}

// missingCause has the pods that have no numbers for one reason.
type missingCause struct {
	reason   metric.Reason
	sentence string
	pods     []string
}

// causesOf groups pods by cause. The cause with the most pods comes first.
func causesOf(gaps []missingPod) []*missingCause {
	var causes []*missingCause
	for i := range gaps {
		g := &gaps[i]
		n := slices.IndexFunc(causes, func(c *missingCause) bool { return c.reason == g.reason && c.sentence == g.sentence })
		if n < 0 {
			n = len(causes)
			causes = append(causes, &missingCause{reason: g.reason, sentence: g.sentence})
		}
		causes[n].pods = append(causes[n].pods, string(g.pod))
	}
	for _, c := range causes {
		slices.Sort(c.pods)
	}
	slices.SortStableFunc(causes, func(x, y *missingCause) int {
		return cmp.Or(cmp.Compare(len(y.pods), len(x.pods)), cmp.Compare(x.reason, y.reason), strings.Compare(x.sentence, y.sentence))
	})
	return causes
}

// missingNote returns a note that shows which of an autoscaler's running pods have no numbers.
// others is the number of other pods without numbers, for which no reason was looked up.
func missingNote(namespace string, running int, gaps []missingPod, others int) string {
	lacking := len(gaps) + others
	note := fmt.Sprintf("%d of %d pods %s no CPU or memory. ", lacking, running, humanize.HasHave(lacking))
	if running == 1 {
		note = "The only pod has no CPU or memory. "
	}
	tail := ". Run: kubectl weir explain namespace " + namespace
	// The end of the note must have room for the number of pods that are not named.
	space := noteLimit - len(tail) - len("; 9999999 more")
	left, sep := lacking, ""
	for _, c := range causesOf(gaps) {
		text, named := c.format(space - len(note) - len(sep))
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

// format returns a cause with the names of its pods, in at most limit bytes. It is empty if not
// even one name fits. The returned count includes the pods that are only counted as "more".
func (c *missingCause) format(limit int) (text string, pods int) {
	text = fmt.Sprintf("%v (%s): ", c.reason, c.sentence)
	limit -= len(" and 9999999 more")
	for i, name := range c.pods {
		sep := ""
		if i > 0 {
			sep = ", "
		}
		if i == maxNames || len(text)+len(sep)+len(name) > limit {
			if i == 0 {
				return "", 0
			}
			return fmt.Sprintf("%s and %d more", text, len(c.pods)-i), len(c.pods)
		}
		text += sep + name
	}
	return text, len(c.pods)
}

// completeNote returns a note that reports that the pods have numbers again.
func completeNote(pods int) string {
	if pods == 1 {
		return "The pod has CPU and memory again."
	}
	return fmt.Sprintf("All %d pods have CPU and memory again.", pods)
}
