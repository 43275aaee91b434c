package hpaevents

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// maxExplained is the number of pods of one autoscaler for which reasons are looked up. An Event
// has room for fewer, and thousands of pods on a broken network have one cause.
const maxExplained = 50

// podCheck is the result of a check of an autoscaler's pods.
type podCheck struct {
	hpa     *hpaInfo
	running int            // pods that run and are not being deleted
	missing []*cluster.Pod // the running pods that have no numbers
}

// missingPod explains why a pod has no numbers.
type missingPod struct {
	pod      metric.PodName
	reason   metric.Reason
	sentence string // the reason as a sentence
	severity metric.Severity
}

// pendingEvent is an Event that must be written.
type pendingEvent struct {
	hpa      *hpaInfo
	complete bool // no pod is without numbers any more
	note     string
	at       time.Time
	// first is the time at which this text was first written. count is how often it has been written,
	// including now.
	first time.Time
	count int

	before hpaRecord // the record to restore if the write fails
}

// eventThrottle decides which Events are due. It keeps the last Event of each autoscaler and has
// no clock, client or goroutine.
type eventThrottle struct {
	limiter *rate.Limiter // the limit on the Events of all autoscalers
	records map[types.UID]*hpaRecord
}

// hpaRecord is the state of one autoscaler.
type hpaRecord struct {
	since map[metric.PodUID]time.Time // the time since which each pod has had no numbers
	next  time.Time                   // the time of the next lookup of reasons
	// lastEvent is the time of the last Event; zero if there was none. reasons are the reasons of the
	// last MetricsMissing; empty if MetricsComplete followed it.
	lastEvent time.Time
	reasons   string
	note      string // the note of the last MetricsMissing
	first     time.Time
	count     int
}

func newEventThrottle(burst int) *eventThrottle {
	return &eventThrottle{
		limiter: rate.NewLimiter(rate.Every(eventInterval), burst),
		records: map[types.UID]*hpaRecord{},
	}
}

// decideEvents takes the checks of all autoscalers and returns the Events to write. cause returns the
// reason why a pod has no numbers; it is called only if an Event may be due. If leads is false, no
// Event is due.
func (t *eventThrottle) decideEvents(now time.Time, checks []podCheck, leads bool, cause func(*cluster.Pod) missingPod) (list []pendingEvent) {
	seen := make(map[types.UID]bool, len(checks))
	for i := range checks {
		seen[checks[i].hpa.uid] = true
		t.recordMissing(&checks[i], now)
	}
	for uid, r := range t.records {
		if !seen[uid] || r.idle(now) {
			delete(t.records, uid)
		} else if !leads {
			*r = hpaRecord{since: r.since}
		}
	}
	if !leads {
		return nil
	}
	// The autoscaler with the oldest last Event comes first, so that the common limit does not always
	// stop the same autoscalers.
	waiting := make([]*podCheck, 0, len(t.records))
	for i := range checks {
		if t.records[checks[i].hpa.uid] != nil {
			waiting = append(waiting, &checks[i])
		}
	}
	slices.SortFunc(waiting, func(x, y *podCheck) int {
		return cmp.Or(t.records[x.hpa.uid].lastEvent.Compare(t.records[y.hpa.uid].lastEvent), strings.Compare(x.hpa.String(), y.hpa.String()))
	})
	for _, s := range waiting {
		if n, ok := t.decideEvent(s, now, cause); ok {
			list = append(list, n)
		}
	}
	return list
}

// recordMissing records since when each pod has had no numbers.
func (t *eventThrottle) recordMissing(s *podCheck, now time.Time) {
	r := t.records[s.hpa.uid]
	if r == nil {
		if len(s.missing) == 0 {
			return
		}
		r = &hpaRecord{}
		t.records[s.hpa.uid] = r
	}
	since := make(map[metric.PodUID]time.Time, len(s.missing))
	for _, p := range s.missing {
		since[p.UID] = now
		if at, ok := r.since[p.UID]; ok {
			since[p.UID] = at
		}
	}
	r.since = since
}

// idle reports whether the record can be deleted.
func (r *hpaRecord) idle(now time.Time) bool {
	return len(r.since) == 0 && r.reasons == "" && now.Sub(r.lastEvent) >= repeatInterval
}

// decideEvent returns the Event that is due for one autoscaler, if any.
func (t *eventThrottle) decideEvent(s *podCheck, now time.Time, cause func(*cluster.Pod) missingPod) (pendingEvent, bool) {
	r := t.records[s.hpa.uid]
	if s.running == 0 || now.Sub(r.lastEvent) < minInterval || now.Before(r.next) {
		return pendingEvent{}, false // without pods nothing is missing or complete
	}
	var late []*cluster.Pod
	for _, p := range s.missing {
		if now.Sub(r.since[p.UID]) >= grace {
			late = append(late, p)
		}
	}
	gaps, harmless := t.explainMissing(r, late, now, cause)
	switch others := max(0, len(late)-maxExplained); {
	case len(gaps) > 0:
		reasons := reasonsOf(gaps)
		if reasons == r.reasons && now.Sub(r.lastEvent) < repeatInterval {
			break
		}
		return t.addEvent(s.hpa, now, reasons, missingNote(s.hpa.Namespace, s.running, gaps, others))
	case r.reasons != "" && harmless == len(s.missing) && s.running > harmless:
		return t.addEvent(s.hpa, now, "", completeNote(s.running-harmless))
	}
	if len(late) > 0 {
		r.next = now.Add(grace) // an earlier lookup would give the same result
	}
	return pendingEvent{}, false
}

// explainMissing returns why pods have no numbers. It omits those that are not reported yet.
// harmless is the number of pods that need no numbers.
func (t *eventThrottle) explainMissing(r *hpaRecord, late []*cluster.Pod, now time.Time, cause func(*cluster.Pod) missingPod) (gaps []missingPod, harmless int) {
	if len(late) > maxExplained {
		// The same pods are taken each time, so that the reasons do not seem to change.
		late = slices.Clone(late)
		slices.SortFunc(late, func(x, y *cluster.Pod) int { return strings.Compare(string(x.Name), string(y.Name)) })
		late = late[:maxExplained]
	}
	for _, p := range late {
		g := cause(p)
		switch {
		case g.severity == metric.None:
			harmless++
		case g.severity == metric.Temporary && now.Sub(r.since[p.UID]) < temporaryGrace:
		default:
			gaps = append(gaps, g)
		}
	}
	return gaps, harmless
}

// addEvent records an Event if the limit for all autoscalers allows it.
func (t *eventThrottle) addEvent(h *hpaInfo, now time.Time, reasons, note string) (pendingEvent, bool) {
	r := t.records[h.uid]
	if !t.limiter.AllowN(now, 1) {
		return pendingEvent{}, false
	}
	n := pendingEvent{hpa: h, complete: reasons == "", note: note, at: now, first: now, count: 1, before: *r}
	if reasons != "" && note == r.note {
		n.first, n.count = r.first, r.count+1
	}
	r.lastEvent, r.reasons, r.note, r.first, r.count = now, reasons, note, n.first, n.count
	if n.complete {
		r.note = ""
	}
	return n, true
}

// retract restores the record after a failed write, so that the Event is due again.
func (t *eventThrottle) retract(n pendingEvent) {
	if r := t.records[n.hpa.uid]; r != nil {
		r.reasons, r.note, r.first, r.count = n.before.reasons, n.before.note, n.before.first, n.before.count
	}
}

// reasonsOf returns the set of reasons, sorted, as one text.
func reasonsOf(gaps []missingPod) string {
	var names []string
	for i := range gaps {
		names = append(names, gaps[i].reason.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}
