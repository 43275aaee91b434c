package exact

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// schedule is the random schedule of one seed.
type schedule struct {
	seed     uint64
	options  simulator.Options
	views    []simulator.Endpoint // the endpoints by which each node is read
	second   bool                 // /metrics/resource has a cross-check from a second endpoint
	facts    bool                 // there is an API server
	lag      time.Duration        // how late the cluster facts are
	begins   time.Duration        // when weir starts, after the fleet's start
	rounds   int                  // of each view
	interval time.Duration        // at first
	changes  map[int]time.Duration
	missed   float64 // share of answers that never arrive
	late     float64 // share of answers that are older than they should be
	cut      float64 // share of answers that end within a line
	wobble   time.Duration
	slack    time.Duration // by how much start times must differ to say which is later
	stalls   []stall
	cause    *cause // nil if the faults are any
}

// stall is a time in which the cluster facts do not change, or are older than
// they were.
type stall struct {
	from, until time.Duration // after the fleet's start
	back        time.Duration // 0: they do not change
}

// heard returns the moment of the API server's state that weir has at now.
func (s *schedule) heard(now time.Time) time.Time {
	heard := now.Add(-s.lag)
	for _, f := range s.stalls {
		from, until := s.options.Start.Add(f.from), s.options.Start.Add(f.until)
		if now.Before(from) || !now.Before(until) {
			continue
		}
		if heard = from.Add(-s.lag); f.back > 0 {
			heard = now.Add(-s.lag - f.back)
		}
	}
	return heard
}

// kinds are functions that return a fault of a random pod, container and time. A line is a
// fault.
var kinds = []func(c *chooser) string{
	func(c *chooser) string { return c.f("restart pod=%s at=%s", c.pod(), c.at()) },
	func(c *chooser) string {
		return c.f("restart pod=%s container=%s at=%s", c.pod(), c.container(), c.at())
	},
	func(c *chooser) string {
		return c.f("restart pod=%s container=%s at=%s for=%s", c.pod(), c.container(), c.at(), c.within(50*time.Millisecond, 40*time.Second))
	},
	func(c *chooser) string { return c.f("replace pod=%s at=%s", c.pod(), c.at()) },
	func(c *chooser) string {
		return c.f("duplicate pod=%s at=%s%s style=old-instance", c.pod(), c.at(), c.span(20, 240))
	},
	func(c *chooser) string {
		return c.f("duplicate pod=%s at=%s%s style=two-lines", c.pod(), c.at(), c.span(20, 240))
	},
	func(c *chooser) string {
		return c.f("duplicate pod=%s at=%s%s style=two-paths", c.pod(), c.at(), c.span(20, 240))
	},
	func(c *chooser) string { return c.f("reset pod=%s container=%s at=%s", c.pod(), c.container(), c.at()) },
	func(c *chooser) string {
		return c.f("jitter pod=%s start=±%dms at=%s%s", c.pod(), 1+c.r.IntN(9), c.at(), c.span(30, 300))
	},
	func(c *chooser) string { return c.f("missing pod=%s at=%s%s", c.pod(), c.at(), c.span(5, 90)) },
	func(c *chooser) string {
		return c.f("missing container=%s at=%s%s", c.container(), c.at(), c.span(5, 90))
	},
	func(c *chooser) string { return c.f("zero container=%s at=%s%s", c.container(), c.at(), c.span(5, 60)) },
	func(c *chooser) string { return c.f("zero pod=%s at=%s%s", c.pod(), c.at(), c.span(5, 60)) },
	func(c *chooser) string { return c.f("stale pod=%s at=%s%s", c.pod(), c.at(), c.span(5, 90)) },
	func(c *chooser) string { return c.f("stale node=%s at=%s%s", c.node(), c.at(), c.span(5, 90)) },
	func(c *chooser) string { return c.crashLoop(c.at0()) },
	func(c *chooser) string {
		return c.f("slowstart pod=%s by=%s at=%s\nrestart pod=%s at=%s", c.pod(), c.within(100*time.Millisecond, 15*time.Second), c.at(), c.pod(), c.at())
	},
	func(c *chooser) string { return c.reboot() },
	// Nothing shows what a node's clock did before weir's first read.
	func(c *chooser) string {
		return c.f("clockstep node=%s at=%s by=%s", c.node(), c.within(c.begun, c.until), c.step())
	},
}

// chooser chooses the parts of a fault.
type chooser struct {
	r     *rand.Rand
	fleet *simulator.Fleet
	begun time.Duration // when every endpoint has been read
	until time.Duration
}

func (c *chooser) f(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func (c *chooser) node() string { return pick(c.r, c.fleet.Nodes()).Name }

func (c *chooser) pod() string {
	p := pick(c.r, pick(c.r, c.fleet.Nodes()).Pods())
	return p.Namespace + "/" + p.Name
}

func (c *chooser) container() string {
	return pick(c.r, c.fleet.Nodes()[0].Pods()[0].Containers).Name
}

func (c *chooser) at() string { return c.at0().String() }

func (c *chooser) at0() time.Duration { return c.within(0, c.until) }

// crashLoop returns restarts of a container. Its runs last for seconds, and it waits longer
// each time.
func (c *chooser) crashLoop(at time.Duration) string {
	pod, container, wait := c.pod(), c.container(), c.within(2*time.Second, 12*time.Second)
	var lines []string
	for range 3 + c.r.IntN(3) {
		lines = append(lines, c.f("restart pod=%s container=%s at=%s for=%s", pod, container, at, wait))
		at += wait + c.within(time.Second, 20*time.Second)
		wait = min(2*wait, time.Minute)
	}
	return strings.Join(lines, "\n")
}

// reboot returns a reboot of a node. In half of them the node's clock is wrong until it is
// set, seconds later.
func (c *chooser) reboot() string {
	node, at, silent := c.node(), c.within(c.begun, c.until*3/4), c.within(15*time.Second, 2*time.Minute)
	lines := []string{c.f("reboot node=%s at=%s for=%s", node, at, silent)}
	if c.r.IntN(2) == 0 {
		by := c.step()
		back, ok := strings.CutPrefix(by, "-")
		if !ok {
			back = "-" + by
		}
		lines = append(lines, c.f("clockstep node=%s at=%s by=%s", node, at+silent/2, by),
			c.f("clockstep node=%s at=%s by=%s", node, at+silent+c.within(0, time.Minute), back))
	}
	return strings.Join(lines, "\n")
}

func (c *chooser) within(low, high time.Duration) time.Duration {
	return (low + time.Duration(c.r.Int64N(int64(high-low)))).Truncate(time.Millisecond)
}

// span returns how long a fault lasts, in seconds. Sometimes it does not end.
func (c *chooser) span(low, high int) string {
	if c.r.IntN(12) == 0 {
		return ""
	}
	return " for=" + c.within(time.Duration(low)*time.Second, time.Duration(high)*time.Second).String()
}

// step returns how far a clock jumps: seconds, minutes or hours, in either
// direction.
func (c *chooser) step() string {
	by := []time.Duration{c.within(leastStep, time.Minute), c.within(time.Minute, 2*time.Hour)}[c.r.IntN(2)]
	if c.r.IntN(2) == 0 {
		by = -by
	}
	return by.String()
}

// leastStep is the smallest step of a clock in a schedule. A node reports its
// time in whole seconds, so smaller steps are not always visible.
const leastStep = 2100 * time.Millisecond

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// build returns the schedule's fleet. It drops faults that match nothing
// because their pod is between two lives at that time.
func (s *schedule) build() (*simulator.Fleet, error) {
	all := s.options.Faults
	fleet, err := simulator.New(s.options)
	for i := 0; err != nil && i < len(all); i++ {
		s.options.Faults = slices.Delete(slices.Clone(all), i, i+1)
		if fleet, without := simulator.New(s.options); without == nil {
			return fleet, nil
		}
	}
	if err == nil {
		return fleet, nil
	}
	for i := range all {
		if strings.Contains(err.Error(), all[i].String()) {
			s.options.Faults = slices.Delete(slices.Clone(all), i, i+1)
			return s.build()
		}
	}
	return nil, err
}

// newSchedule returns the schedule of a seed.
func newSchedule(seed uint64) (schedule, error) {
	r := rand.New(rand.NewPCG(seed, 4))
	s := schedule{
		seed:     seed,
		options:  simulator.Options{Nodes: 1, Pods: 2 + r.IntN(2), Containers: 1 + r.IntN(2), Seed: seed, Fresh: r.IntN(3) == 0},
		facts:    r.IntN(2) == 0,
		second:   r.IntN(3) > 0,
		rounds:   16 + r.IntN(16),
		interval: pick(r, []time.Duration{10, 15, 15, 15, 15, 30, 60}) * time.Second,
		changes:  map[int]time.Duration{},
		begins:   time.Duration(1 + r.Int64N(int64(time.Minute))),
		slack:    startSlack,
	}
	s.options.Start = time.Unix(1_800_000_000+int64(r.IntN(1_000_000)), int64(r.IntN(1e9)))
	if s.facts {
		s.lag = pick(r, []time.Duration{0, 100 * time.Millisecond, time.Second, 4 * time.Second, 12 * time.Second})
	}
	switch r.IntN(7) {
	case 0, 1, 2:
		s.views = []simulator.Endpoint{simulator.Resource}
	case 3, 4:
		s.views = []simulator.Endpoint{simulator.Summary}
	case 5:
		s.views = []simulator.Endpoint{simulator.CAdvisor}
	case 6:
		s.views = []simulator.Endpoint{simulator.Resource, pick(r, []simulator.Endpoint{simulator.Summary, simulator.CAdvisor})}
	}
	if r.IntN(3) == 0 {
		s.missed = 0.25 * r.Float64()
	}
	if r.IntN(4) == 0 {
		s.late = 0.2 * r.Float64()
	}
	if r.IntN(6) == 0 {
		s.cut = 0.1 * r.Float64()
	}
	if r.IntN(3) == 0 {
		s.wobble = time.Duration(r.Int64N(int64(5 * time.Second)))
	}
	if r.IntN(4) == 0 {
		s.changes[r.IntN(s.rounds)] = pick(r, []time.Duration{10, 15, 30, 60}) * time.Second
	}
	two := r.IntN(6) == 0
	if two {
		s.options.Nodes = 2
	}
	bare, err := simulator.New(s.options)
	if err != nil {
		return s, err
	}
	c := chooser{r: r, fleet: bare, begun: s.begins + s.interval, until: s.begins + time.Duration(s.rounds)*s.interval}
	if two {
		p := pick(r, bare.Nodes()[0].Pods())
		if err := s.add(c.f("twonodes pod=%s/%s node=%s at=%s%s", p.Namespace, p.Name, bare.Nodes()[1].Name, c.within(time.Second, c.until), c.span(20, 240))); err != nil {
			return s, err
		}
	}
	for range pick(r, []int{0, 1, 1, 1, 2, 2, 3, 4, 6}) {
		if err := s.add(pick(r, kinds)(&c)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// add adds faults, one on each line.
func (s *schedule) add(text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		f, err := simulator.Parse(line)
		if err != nil {
			return fmt.Errorf("parse %q: %w", line, err)
		}
		s.options.Faults = append(s.options.Faults, f)
	}
	return nil
}

// String returns the schedule as text for people.
func (s schedule) String() string {
	flag := "-seed"
	if s.cause != nil {
		flag = "-cause " + s.cause.name + " -seed"
	}
	text := flag + fmt.Sprintf(" %d: %v of %d nodes × %d pods × %d containers, fresh %v, from %v every %v", s.seed, s.views, s.options.Nodes, s.options.Pods, s.options.Containers, s.options.Fresh, s.begins.Round(time.Second), s.interval)
	if s.facts {
		text += fmt.Sprintf(", facts %v late", s.lag)
	}
	for _, f := range s.stalls {
		text += fmt.Sprintf(", facts of %v ago from %v to %v", f.back, f.from, f.until)
	}
	if s.second {
		text += ", second endpoint"
	}
	if s.missed > 0 {
		text += fmt.Sprintf(", %.0f%% missed", 100*s.missed)
	}
	if s.late > 0 {
		text += fmt.Sprintf(", %.0f%% late", 100*s.late)
	}
	if s.cut > 0 {
		text += fmt.Sprintf(", %.0f%% cut", 100*s.cut)
	}
	if len(s.changes) > 0 {
		text += fmt.Sprintf(", changes %v", s.changes)
	}
	for _, f := range s.options.Faults {
		text += "; " + f.String()
	}
	return text
}
