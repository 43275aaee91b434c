package slow_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/explain/slow"
)

// A workload is threads of one pod on a simulated node.
type workload struct {
	name    string
	threads int
	demand  float64 // of each thread, in CPUs; 1 is a busy loop
	limit   float64 // in CPUs; 0 for none
	request float64
	until   time.Duration // when it ends; 0 for never
}

// simulation is a node whose CPUs run the threads with the least weighted time, in ticks of a millisecond. It
// counts as the kernel does: a pod waits (some) while one of its threads could run and does not, and fully
// while none of them runs; a limit is a quota in periods of 100 ms, and while it is used up each CPU that
// could run a thread of the pod counts as throttled.
type simulation struct {
	cpus int
	all  []workload
}

const (
	tick   = time.Millisecond
	period = 100
)

type threadState struct {
	pod      int
	vruntime float64
	backlog  float64 // work that came and is not done, in ticks
}

type podState struct {
	quota                      float64
	cpu, some, full, throttled float64 // in ticks, since the last reading
}

// simulated is how long a simulation lasts.
const simulated = time.Minute

// run returns what a weir with readings each 15 s has of the first pod.
func (s *simulation) run() slow.Facts {
	pods := make([]podState, len(s.all))
	var threads []threadState
	for i := range s.all {
		for range s.all[i].threads {
			threads = append(threads, threadState{pod: i})
		}
	}
	uses := make([]slow.Use, len(s.all))
	for i, w := range s.all {
		uses[i] = slow.Use{Namespace: "shop", Name: w.name, CPURequest: w.request, CPULimit: w.limit}
	}
	f := slow.Facts{Node: "n1", From: noon.Add(-simulated), To: noon, Whole: slow.Use{CPULimit: float64(s.cpus)}}
	total := int(simulated / tick)
	for now := range total {
		s.tick(now, pods, threads)
		if (now+1)%int(step/tick) != 0 {
			continue
		}
		at, ticks, whole := f.From.Add(time.Duration(now+1)*tick), float64(step/tick), 0.0
		for i := range pods {
			p, u := &pods[i], &uses[i]
			add := func(series *slow.Series, value float64) {
				*series = append(*series, slow.Point{At: at, Value: value / ticks})
			}
			add(&u.CPU, p.cpu)
			add(&u.Some[0], p.some)
			add(&u.Full[0], p.full)
			if u.CPULimit > 0 {
				add(&u.Throttled, p.throttled)
			}
			whole += p.cpu
			*p = podState{quota: p.quota}
		}
		f.Whole.CPU = append(f.Whole.CPU, slow.Point{At: at, Value: whole / ticks})
	}
	f.Pod, f.Neighbours = uses[0], uses[1:]
	container := uses[0]
	container.Name = "app"
	f.Containers = []slow.Use{container}
	f.Pod.Throttled, f.Pod.CPULimit = nil, 0
	return f
}

// tick runs one millisecond.
func (s *simulation) tick(now int, pods []podState, threads []threadState) {
	if now%period == 0 {
		for i := range pods {
			pods[i].quota = s.all[i].limit * period
		}
	}
	runnable, running := make([]int, len(pods)), make([]int, len(pods))
	var ready []int
	for i := range threads {
		th := &threads[i]
		w := &s.all[th.pod]
		if w.until > 0 && time.Duration(now)*tick >= w.until {
			continue
		}
		if th.backlog = min(th.backlog+w.demand, 50); w.demand >= 1 {
			th.backlog = 50
		}
		if th.backlog < 1 {
			continue
		}
		runnable[th.pod]++
		if w.limit == 0 || pods[th.pod].quota > 0 {
			ready = append(ready, i)
		}
	}
	slices.SortStableFunc(ready, func(a, b int) int { return cmp.Compare(threads[a].vruntime, threads[b].vruntime) })
	for _, i := range ready {
		th := &threads[i]
		p := &pods[th.pod]
		limited := s.all[th.pod].limit > 0
		if sum(running) == s.cpus {
			break
		}
		if limited && p.quota <= 0 {
			continue
		}
		running[th.pod]++
		p.quota--
		p.cpu++
		th.backlog--
		th.vruntime += float64(s.all[th.pod].threads) / max(0.01, s.all[th.pod].request)
	}
	for i := range pods {
		p := &pods[i]
		if runnable[i] > running[i] {
			p.some++
			if running[i] == 0 {
				p.full++
			}
		}
		if s.all[i].limit > 0 && p.quota <= 0 && runnable[i] > running[i] {
			p.throttled += float64(min(runnable[i]-running[i], s.cpus))
		}
	}
	// A thread that slept does not get the time that it did not want.
	least := math.Inf(1)
	for _, i := range ready {
		least = min(least, threads[i].vruntime)
	}
	for i := range threads {
		if !math.IsInf(least, 1) {
			threads[i].vruntime = max(threads[i].vruntime, least-10)
		}
	}
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

// matrixCase is a simulation and its truth, which is known from how it was made.
type matrixCase struct {
	truth string
	simulation
}

// The truths.
const (
	limitOnly = "own limit"
	hogOnly   = "neighbour"
	both      = "both"
	alone     = "own use"
	nothing   = "nothing"
	left      = "neighbour, then gone"
)

// matrix returns the cases.
func matrix() (all []matrixCase) {
	add := func(truth string, cpus int, pods ...workload) {
		all = append(all, matrixCase{truth, simulation{cpus, pods}})
	}
	for _, cpus := range []int{2, 3, 4} {
		hog := workload{name: "hog", threads: 3 * cpus, demand: 1, request: 0.4 * float64(cpus)}
		quiet := workload{name: "quiet", threads: 2, demand: 0.05}
		for _, threads := range []int{1, 2, 4} {
			if threads <= cpus {
				add(limitOnly, cpus, workload{name: "web", threads: threads, demand: 1, limit: 0.3 * float64(threads), request: 0.3})
				add(limitOnly, cpus, workload{name: "web", threads: threads, demand: 1, limit: 0.5, request: 0.1}, quiet)
				add(nothing, cpus, workload{name: "web", threads: threads, demand: 0.3, limit: float64(threads), request: 0.5}, quiet)
			}
			add(hogOnly, cpus, workload{name: "web", threads: threads, demand: 1, request: 0.1}, hog)
			add(hogOnly, cpus, workload{name: "web", threads: threads, demand: 0.7}, hog, quiet)
			add(both, cpus, workload{name: "web", threads: threads, demand: 1, limit: 0.1, request: 0.1}, hog)
			gone := hog
			gone.until = simulated / 2
			add(left, cpus, workload{name: "web", threads: min(threads, cpus), demand: 1, request: 0.1}, gone)
		}
		add(alone, cpus, workload{name: "web", threads: 3 * cpus, demand: 1})
		add(alone, cpus, workload{name: "web", threads: 2 * cpus, demand: 1, request: float64(cpus)}, quiet)
	}
	return all
}

// answer returns the causes that the answer names about CPU, and the neighbours.
func answer(c *matrixCase) (causes []slow.Cause, names []string, s slow.Stall, whole slow.Slow) {
	whole = slow.Decide(c.run())
	s = whole.Stalls[0]
	if whole.Resource != "" {
		for _, p := range s.Parts {
			if p.Share >= 0.01 && p.Share >= 0.1**s.Some {
				causes = append(causes, p.Cause)
			}
		}
	}
	for _, n := range s.Neighbours {
		names = append(names, n.Pod)
	}
	return causes, names, s, whole
}

// isRight reports whether an answer is the truth.
func (c *matrixCase) isRight(causes []slow.Cause, names []string, unclear bool) bool {
	onlyHog := slices.Equal(names, []string{"hog"})
	first := slow.Cause("")
	if len(causes) > 0 {
		first = causes[0]
	}
	switch c.truth {
	case limitOnly:
		return first == slow.OwnLimit && len(names) == 0
	case hogOnly, left:
		return first == slow.Neighbours && onlyHog
	case both:
		// With several threads, the answer has the limit, and that others may have a part in it.
		return slices.Contains(causes, slow.OwnLimit) && (slices.Contains(causes, slow.Neighbours) && onlyHog || c.all[0].threads > 1 && unclear)
	case alone:
		return first == slow.OwnUse && len(names) == 0
	}
	return len(names) == 0 && (first == "" || first == slow.Nobody)
}

// TestMatrix checks the attribution of simulated waits for CPU whose truth is known. No neighbour is named
// where there is none, or where the pod's own limit is the cause.
func TestMatrix(t *testing.T) {
	right, all := 0, matrix()
	for i := range all {
		c := &all[i]
		causes, names, s, whole := answer(c)
		ok := c.isRight(causes, names, len(whole.NotKnown) > 0)
		if ok {
			right++
		} else {
			t.Logf("case %d, %s on %d CPUs, %+v: %v %v: %s", i, c.truth, c.cpus, c.all, s.Parts, names, whole.Summary)
		}
		if (c.truth == limitOnly || c.truth == alone || c.truth == nothing) && len(names) > 0 {
			t.Errorf("case %d, %s: neighbours %v are named: %s", i, c.truth, names, whole.Summary)
		}
	}
	if want := int(math.Ceil(0.95 * float64(len(all)))); right < want {
		t.Errorf("%d of %d cases are right, want %d", right, len(all), want)
	}
}

// matrixText is the table of the cases.
func matrixText(t *testing.T) string {
	t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "%-21s %-5s %-52s %-6s %s\n", "TRUTH", "CPUS", "PODS (THREADS x DEMAND, LIMIT, REQUEST)", "WAITED", "ANSWER")
	all := matrix()
	for i := range all {
		c := &all[i]
		causes, names, stall, whole := answer(c)
		var pods []string
		for _, w := range c.all {
			text := fmt.Sprintf("%s %dx%g", w.name, w.threads, w.demand)
			if w.limit > 0 {
				text += fmt.Sprintf(" l=%.1f", w.limit)
			}
			if w.request > 0 {
				text += fmt.Sprintf(" r=%.1f", w.request)
			}
			pods = append(pods, text)
		}
		var parts []string
		for _, p := range stall.Parts {
			if slices.Contains(causes, p.Cause) {
				parts = append(parts, fmt.Sprintf("%s %.0f%%", p.Cause, 100*p.Share))
			}
		}
		mark := ""
		if len(whole.NotKnown) > 0 {
			mark = " (perhaps others, too)"
		}
		if !c.isRight(causes, names, mark != "") {
			mark += "  WRONG"
		}
		fmt.Fprintf(&s, "%-21s %-5d %-52s %5.0f%% %s %s%s\n", c.truth, c.cpus, strings.Join(pods, ", "), 100**stall.Some, strings.Join(parts, ", "), strings.Join(names, ","), mark)
	}
	return strings.ReplaceAll(s.String(), " \n", "\n")
}
