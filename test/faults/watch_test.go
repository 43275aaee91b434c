//go:build e2e

package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/simulator"
)

// watch asks a program again and again what all containers use, and compares it with the truth.
type watch struct {
	s        *stage
	ask      func() ([]usage.Item, error)
	interval time.Duration          // between two reads of a node
	rounding time.Duration          // by which the program or the node rounds times down
	struck   func(*usage.Item) bool // whether the fault concerns the container
	ahead    time.Duration          // by how much the clocks of struck nodes jump
	judged   map[string]verdict
	stop     chan struct{}
	ended    chan struct{}

	mu    sync.Mutex
	looks []look
}

// verdict is the judgement of a number that was served before.
type verdict struct {
	nanocores int64
	at        time.Time
	ahead     time.Duration // of the node's clock
	right     bool
}

// look is what one answer had.
type look struct {
	at             time.Time
	took           time.Duration
	err            error
	healthy, other numbers
}

// numbers are those of the containers that the fault concerns, or of those that it does not.
type numbers struct {
	containers, present int
	old                 int // or wrong
	oldest              time.Duration
	wrong               []string
	reasons             map[string]int // of absent numbers
}

const pause = 500 * time.Millisecond

// watch begins to ask the weir at this URL until the end of the test. struck says whether the fault concerns a
// container, and ahead by how much the clocks of its nodes jump.
func (s *stage) watch(server string, struck func(*usage.Item) bool, ahead time.Duration) *watch {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	s.t.Cleanup(client.CloseIdleConnections)
	w := &watch{s: s, interval: interval, rounding: time.Millisecond, struck: struck, ahead: ahead}
	w.ask = func() ([]usage.Item, error) {
		response, err := client.Get(server + weirdev.Path + string(usage.Containers) + "?metrics=")
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %s", response.Status)
		}
		var list usage.List
		return list.Items, json.NewDecoder(response.Body).Decode(&list)
	}
	w.begin()
	return w
}

// begin asks until the end of the test.
func (w *watch) begin() {
	w.judged, w.stop, w.ended = map[string]verdict{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(w.ended)
		for {
			l := w.look()
			w.mu.Lock()
			w.looks = append(w.looks, l)
			w.mu.Unlock()
			select {
			case <-w.stop:
				return
			case <-time.After(pause):
			}
		}
	}()
	w.s.t.Cleanup(w.end)
}

func (w *watch) end() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	<-w.ended
}

func (w *watch) look() look {
	l := look{at: time.Now()}
	items, err := w.ask()
	l.err = err
	now := time.Now()
	l.took = now.Sub(l.at)
	truth := truths{}
	for i := range items {
		it, of := &items[i], &l.healthy
		if w.struck(it) {
			of = &l.other
		}
		of.containers++
		if it.CPU == nil {
			if of.reasons == nil {
				of.reasons = map[string]int{}
			}
			of.reasons[it.Reasons[0].Reason]++
			continue
		}
		of.present++
		v, known := w.judge(it, truth)
		if !v.right && !known {
			of.wrong = append(of.wrong, fmt.Sprintf("%s/%s/%s: %d nanocores in %v s before %v",
				it.Namespace, it.Pod, it.Container, it.CPU.Nanocores, it.CPU.WindowSeconds, it.CPU.Time))
		}
		if !v.right {
			of.old++
			continue
		}
		age := now.Sub(it.CPU.Time.Add(-v.ahead))
		of.oldest = max(of.oldest, age)
		if age > 2*w.interval+w.rounding {
			of.old++
		}
	}
	return l
}

// judge returns the verdict about a number, and whether it was known from an earlier answer.
func (w *watch) judge(it *usage.Item, truth truths) (v verdict, known bool) {
	name := fmt.Sprintf("%s/%s/%s", it.Namespace, it.Pod, it.Container)
	v, known = w.judged[name]
	if known && v.nanocores == it.CPU.Nanocores && v.at.Equal(it.CPU.Time) {
		return v, true
	}
	v = verdict{nanocores: it.CPU.Nanocores, at: it.CPU.Time, right: truth.has(w.s.fleet, it, 0, w.rounding)}
	// A container that sleeps has the same rate by both clocks. The number is then of the younger time.
	if w.ahead != 0 && truth.has(w.s.fleet, it, w.ahead, w.rounding) {
		if age := time.Since(it.CPU.Time); !v.right || (age+w.ahead).Abs() < age.Abs() {
			v.ahead, v.right = w.ahead, true
		}
	}
	w.judged[name] = v
	return v, false
}

// truths are the true usages of nodes, by node and window.
type truths map[window][]simulator.Usage

type window struct {
	node     string
	from, to int64
}

func (t truths) of(fleet *simulator.Fleet, node string, from, to int64) []simulator.Usage {
	w := window{node, from, to}
	all, ok := t[w]
	if !ok {
		all = fleet.Node(node).Truth(time.Unix(0, from), time.Unix(0, to))
		t[w] = all
	}
	return all
}

// has reports whether the number is the rate of a run of the container in its window. ahead is how far
// the node's clock was ahead. Times are rounded down, so each end of the window is later than its
// timestamp by up to rounding.
func (t truths) has(fleet *simulator.Fleet, it *usage.Item, ahead, rounding time.Duration) bool {
	to := it.CPU.Time.Add(-ahead).UnixNano()
	from := to - int64(it.CPU.WindowSeconds*1e9+0.5)
	cut := int64(rounding)
	low, high := t.of(fleet, string(it.Node), from+cut, to), t.of(fleet, string(it.Node), from, to+cut)
	same := func(u *simulator.Usage) bool {
		return u.Namespace == string(it.Namespace) && u.Pod == string(it.Pod) && u.Container == it.Container
	}
	const slack = 2e-9 // rates are whole nanocores
	got, length := float64(it.CPU.Nanocores)/1e9, float64(to-from)
	for i := range low {
		l := &low[i]
		if !same(l) {
			continue
		}
		for k := range high {
			if h := &high[k]; same(h) && h.ID == l.ID && h.Started == l.Started &&
				got >= float64(l.CPUTo-l.CPUFrom)/length-slack && got <= float64(h.CPUTo-h.CPUFrom)/length+slack {
				return true
			}
		}
	}
	return false
}

// complete waits until every container has a number that is not old, and returns the time of that look.
// A nil watch, of a metrics-server that does not run, waits for nothing.
func (w *watch) complete(within time.Duration) time.Time {
	if w == nil {
		return time.Time{}
	}
	w.s.t.Helper()
	began := time.Now()
	var at time.Time
	commands.Eventually(w.s.t, within, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.looks) == 0 || w.looks[len(w.looks)-1].at.Before(began) {
			return fmt.Errorf("there is no answer yet")
		}
		l := &w.looks[len(w.looks)-1]
		if !l.isComplete() {
			return fmt.Errorf("%v, %+v, %+v", l.err, l.healthy, l.other)
		}
		at = l.at
		return nil
	})
	return at
}

func (l *look) isComplete() bool {
	all, has := l.healthy.containers+l.other.containers, l.healthy.present+l.other.present
	return l.err == nil && all > 0 && has == all && l.healthy.old+l.other.old == 0
}

// summary is what was served from one moment to another.
type summary struct {
	looks, failed  int
	slowest        time.Duration
	errors         []string
	healthy, other span
}

// span is a summary of numbers.
type span struct {
	containers    int // in the last answer
	fewest, most  int // numbers that were present
	oldest        time.Duration
	wrong         []string
	firstAbsent   time.Time // of the first answer with an absent number
	reasons       map[string]int
	whole, absent int // answers with all numbers, and with none
}

func (w *watch) between(from, to time.Time) summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	var s summary
	for i := range w.looks {
		l := &w.looks[i]
		if l.at.Before(from) || !l.at.Before(to) {
			continue
		}
		s.looks++
		s.slowest = max(s.slowest, l.took)
		if l.err != nil {
			s.failed++
			s.errors = append(s.errors, l.err.Error())
			continue
		}
		s.healthy.add(l.at, &l.healthy)
		s.other.add(l.at, &l.other)
	}
	return s
}

func (s *span) add(at time.Time, n *numbers) {
	if s.reasons == nil {
		s.reasons, s.fewest = map[string]int{}, n.present
	}
	s.containers = n.containers
	s.fewest, s.most, s.oldest = min(s.fewest, n.present), max(s.most, n.present), max(s.oldest, n.oldest)
	s.wrong = append(s.wrong, n.wrong...)
	for reason, k := range n.reasons {
		s.reasons[reason] += k
	}
	switch {
	case n.present == n.containers:
		s.whole++
	case n.present == 0:
		s.absent++
	}
	if n.present < n.containers && s.firstAbsent.IsZero() {
		s.firstAbsent = at
	}
}

// reasonNames returns the reasons of absent numbers.
func (s *span) reasonNames() string {
	return strings.Join(slices.Sorted(maps.Keys(s.reasons)), ", ")
}

// check fails the test if an answer failed or had a wrong number, or if a number that the fault does not
// concern was absent or old.
func (s *summary) check(t *testing.T, containers int) {
	t.Helper()
	if s.looks == 0 || s.failed > 0 {
		t.Errorf("%d of %d requests failed: %q", s.failed, s.looks, s.errors)
	}
	if wrong := slices.Concat(s.healthy.wrong, s.other.wrong); len(wrong) > 0 {
		t.Errorf("%d wrong numbers: %s", len(wrong), strings.Join(wrong[:min(len(wrong), 5)], "; "))
	}
	if s.healthy.fewest != containers {
		t.Errorf("there were numbers of %d of the %d containers that the fault does not concern: %s", s.healthy.fewest, containers, s.healthy.reasonNames())
	}
	if s.healthy.oldest > 2*interval {
		t.Errorf("a number that the fault does not concern was %v old, want at most %v", s.healthy.oldest, 2*interval)
	}
}

// seconds returns a duration as text.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
