package hpaevents

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// mostExplained is of how many pods of one autoscaler the reasons are looked up.
// A note has room for fewer, and a workload of thousands on a broken network has
// one cause.
const mostExplained = 50

// sight is what one look at an autoscaler's pods showed.
type sight struct {
	hpa     *autoscaler
	running int            // pods that run and are to stay
	lacking []*cluster.Pod // those of them that have no numbers
}

// gap is why a pod has no numbers.
type gap struct {
	pod      metric.PodName
	reason   metric.Reason
	words    string // the reason in a sentence
	severity metric.Severity
}

// notice is an Event to be written.
type notice struct {
	hpa      *autoscaler
	complete bool // nothing is missing any more
	note     string
	at       time.Time
	// first is when this was first said in these words, and count how often it
	// now has been.
	first time.Time
	count int

	before record // what to go back to if it cannot be written
}

// book remembers what was said of every autoscaler, and decides what is to be said.
type book struct {
	grace, patience, repeat, change time.Duration
	bucket                          bucket
	records                         map[types.UID]*record
}

// record is what is remembered of one autoscaler.
type record struct {
	since map[metric.PodUID]time.Time // when each pod was first seen to lack numbers
	next  time.Time                   // when reasons are looked up again
	// spoken is when the last Event was; zero if none was. said are the reasons of
	// the one that stands; empty if none does.
	spoken time.Time
	said   string
	note   string // of the one that stands
	first  time.Time
	count  int
}

func newBook(o Options, now time.Time) *book {
	return &book{
		grace: o.Grace, patience: o.Patience, repeat: o.Repeat, change: o.Change,
		bucket:  bucket{size: float64(o.Burst), every: o.Every, tokens: float64(o.Burst), at: now},
		records: map[types.UID]*record{},
	}
}

// round takes what was seen of all autoscalers and returns what is to be said.
// why tells why a pod has no numbers; it is asked only where something may have to
// be said. Without speak nothing is: somebody else has the word.
func (b *book) round(now time.Time, sights []sight, speak bool, why func(*cluster.Pod) gap) (list []notice) {
	seen := make(map[types.UID]bool, len(sights))
	for i := range sights {
		seen[sights[i].hpa.uid] = true
		b.note(&sights[i], now)
	}
	for uid, r := range b.records {
		if !seen[uid] || r.idle(now, b.repeat) {
			delete(b.records, uid)
		} else if !speak {
			*r = record{since: r.since}
		}
	}
	if !speak {
		return nil
	}
	// Whoever was silent longest goes first, so that none is kept from speaking.
	waiting := make([]*sight, 0, len(b.records))
	for i := range sights {
		if b.records[sights[i].hpa.uid] != nil {
			waiting = append(waiting, &sights[i])
		}
	}
	slices.SortFunc(waiting, func(x, y *sight) int {
		return cmp.Or(b.records[x.hpa.uid].spoken.Compare(b.records[y.hpa.uid].spoken), strings.Compare(x.hpa.full, y.hpa.full))
	})
	for _, s := range waiting {
		if n, ok := b.decide(s, now, why); ok {
			list = append(list, n)
		}
	}
	return list
}

// note notes which pods lack numbers, and since when.
func (b *book) note(s *sight, now time.Time) {
	r := b.records[s.hpa.uid]
	if r == nil {
		if len(s.lacking) == 0 {
			return
		}
		r = &record{}
		b.records[s.hpa.uid] = r
	}
	since := make(map[metric.PodUID]time.Time, len(s.lacking))
	for _, p := range s.lacking {
		since[p.UID] = now
		if t, ok := r.since[p.UID]; ok {
			since[p.UID] = t
		}
	}
	r.since = since
}

// idle reports whether there is nothing to remember.
func (r *record) idle(now time.Time, long time.Duration) bool {
	return len(r.since) == 0 && r.said == "" && now.Sub(r.spoken) >= long
}

// decide returns what is to be said of one autoscaler now, if anything.
func (b *book) decide(s *sight, now time.Time, why func(*cluster.Pod) gap) (notice, bool) {
	r := b.records[s.hpa.uid]
	if s.running == 0 || now.Sub(r.spoken) < b.change || now.Before(r.next) {
		return notice{}, false // no pods are neither missing nor complete
	}
	var late []*cluster.Pod
	for _, p := range s.lacking {
		if now.Sub(r.since[p.UID]) >= b.grace {
			late = append(late, p)
		}
	}
	gaps, harmless := b.explain(r, late, now, why)
	switch others := max(0, len(late)-mostExplained); {
	case len(gaps) > 0:
		said := reasonsOf(gaps)
		if said == r.said && now.Sub(r.spoken) < b.repeat {
			break
		}
		return b.say(s.hpa, now, said, missingNote(s.hpa.namespace, s.running, gaps, others))
	case r.said != "" && harmless == len(s.lacking) && s.running > harmless:
		return b.say(s.hpa, now, "", completeNote(s.running-harmless))
	}
	if len(late) > 0 {
		r.next = now.Add(b.grace) // until then the same would be found
	}
	return notice{}, false
}

// explain returns why pods have no numbers, as far as that is worth saying, and
// how many need none.
func (b *book) explain(r *record, late []*cluster.Pod, now time.Time, why func(*cluster.Pod) gap) (gaps []gap, harmless int) {
	if len(late) > mostExplained {
		// The same ones each time, or the reasons would seem to change.
		late = slices.Clone(late)
		slices.SortFunc(late, func(x, y *cluster.Pod) int { return strings.Compare(string(x.Name), string(y.Name)) })
		late = late[:mostExplained]
	}
	for _, p := range late {
		g := why(p)
		switch {
		case g.severity == metric.None:
			harmless++
		case g.severity == metric.Temporary && now.Sub(r.since[p.UID]) < b.patience:
		default:
			gaps = append(gaps, g)
		}
	}
	return gaps, harmless
}

// say notes that something is said, if the bound of all autoscalers allows it.
func (b *book) say(h *autoscaler, now time.Time, said, note string) (notice, bool) {
	r := b.records[h.uid]
	if !b.bucket.take(now) {
		return notice{}, false
	}
	n := notice{hpa: h, complete: said == "", note: note, at: now, first: now, count: 1, before: *r}
	if said != "" && note == r.note {
		n.first, n.count = r.first, r.count+1
	}
	r.spoken, r.said, r.note, r.first, r.count = now, said, note, n.first, n.count
	if n.complete {
		r.note = ""
	}
	return n, true
}

// retract takes back what could not be said: it is said when it next may be.
func (b *book) retract(n notice) {
	if r := b.records[n.hpa.uid]; r != nil {
		r.said, r.note, r.first, r.count = n.before.said, n.before.note, n.before.first, n.before.count
	}
}

// reasonsOf returns the set of reasons, as one text.
func reasonsOf(gaps []gap) string {
	var names []string
	for i := range gaps {
		names = append(names, gaps[i].reason.String())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// bucket bounds how much is said altogether.
type bucket struct {
	size, tokens float64
	every        time.Duration // in which one more may be taken
	at           time.Time
}

// take takes one, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.size, b.tokens+float64(now.Sub(b.at))/float64(b.every))
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
