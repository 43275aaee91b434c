package exact

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
)

// A cause is a kind of trouble that real nodes and API servers have. Its
// schedules have that trouble again and again; a third of them have another
// random fault too.
type cause struct {
	name string
	text string // for the table
	// faults returns the faults of a schedule, and may change the schedule.
	faults func(c *chooser, s *schedule) []string
	least  int // containers of each pod; 0 for one or two
}

// causes are all causes. A new one is added at the end, because the position
// chooses the schedules.
var causes = []cause{
	{name: "clock-at-start", text: "the node's clock was wrong when a pod started", faults: func(c *chooser, s *schedule) []string {
		s.facts = s.facts || c.r.IntN(2) == 0
		// The first answer must not contain readings from before the first step.
		s.begins, c.begun, c.until = s.begins+20*time.Second, c.begun+20*time.Second, c.until+20*time.Second
		by := signed(c.r, c.within(leastStep, 5*time.Minute))
		wrong := c.within(0, s.begins-19*time.Second)
		pod, born := c.pod(), c.within(wrong, c.until/3)
		mended := c.within(max(born+5*time.Second, c.begun), c.until*2/3)
		return []string{
			c.f("clockstep node=%s at=%s by=%s", c.node(), wrong, by),
			c.f("replace pod=%s at=%s", pod, born),
			c.f("clockstep node=%s at=%s by=%s", c.node(), mended, -by),
			c.f("restart pod=%s container=%s at=%s", pod, c.container(), c.within(mended, c.until)),
		}
	}},
	{name: "unread-at-start", text: "a container is unread at first, and restarts", faults: func(c *chooser, s *schedule) []string {
		pod, container, at := c.pod(), c.container(), c.early()
		again := at + c.within(4*time.Second, 50*time.Second)
		return []string{
			c.f("restart pod=%s container=%s at=%s", pod, container, at),
			c.f("zero pod=%s container=%s at=%s for=%s", pod, container, at, c.within(3*time.Second, 25*time.Second)),
			c.f("restart pod=%s container=%s at=%s for=%s", pod, container, again, c.within(50*time.Millisecond, 3*time.Second)),
		}
	}},
	{name: "restarts-in-a-row", text: "a container restarts twice or more within seconds", faults: func(c *chooser, s *schedule) (list []string) {
		pod, container, at := c.pod(), c.container(), c.early()
		for range 2 + c.r.IntN(3) {
			list = append(list, c.f("restart pod=%s container=%s at=%s for=%s", pod, container, at, c.within(50*time.Millisecond, 2*time.Second)))
			at += c.within(3*time.Second, 30*time.Second)
		}
		return list
	}},
	{name: "old-line-missing", text: "an old run stays beside the new one, and is missing once", faults: func(c *chooser, s *schedule) []string {
		pod, at := c.pod(), c.early()
		return []string{
			c.f("duplicate pod=%s at=%s%s style=%s", pod, at, c.span(40, 240), pick(c.r, []string{"old-instance", "two-lines"})),
			c.f("missing pod=%s container=%s at=%s for=%s style=older", pod, c.container(), at+c.within(10*time.Second, 80*time.Second), c.within(4*time.Second, 25*time.Second)),
		}
	}},
	{name: "two-paths", text: "one container has two cgroup paths with one counter", faults: func(c *chooser, s *schedule) []string {
		return []string{
			c.f("duplicate pod=%s at=%s%s style=two-paths", c.pod(), c.early(), c.span(20, 200)),
			c.f("restart pod=%s at=%s", c.pod(), c.at()),
		}
	}},
	{name: "own-counters", text: "one container has two cgroup paths, each with its counter", faults: func(c *chooser, s *schedule) []string {
		return []string{c.f("duplicate pod=%s at=%s%s style=own-counters", c.pod(), c.early(), c.span(20, 200))}
	}},
	// In the recorded runs of real kubelets no start of a run moved, in 274 series of
	// /metrics/resource and 776 of /metrics/cadvisor. A container was created up to 3 s before
	// its process.
	{name: "starts-off", text: "start times move by milliseconds, or are off by up to 3 s and stay so", faults: func(c *chooser, s *schedule) []string {
		spread, style := c.within(time.Millisecond, 50*time.Millisecond), ""
		if c.r.IntN(2) == 0 {
			spread, style = c.within(50*time.Millisecond, 3*time.Second), " style=steady"
		}
		s.slack = max(startSlack, 2*spread)
		from := ""
		if c.r.IntN(2) == 0 {
			from = " at=" + c.early().String()
		}
		return []string{
			c.f("jitter pod=*/* start=±%s%s%s", spread, from, style),
			pick(c.r, []string{
				c.f("duplicate pod=%s at=%s%s style=old-instance", c.pod(), c.early(), c.span(40, 240)),
				c.f("duplicate pod=%s at=%s%s style=two-lines", c.pod(), c.early(), c.span(40, 240)),
				c.f("restart pod=%s at=%s", c.pod(), c.early()),
				c.f("replace pod=%s at=%s", c.pod(), c.early()),
			}),
		}
	}},
	{name: "duplicates", text: "an old pod or run stays beside the new one", faults: func(c *chooser, s *schedule) []string {
		return []string{
			c.f("duplicate pod=%s at=%s%s style=old-instance", c.pod(), c.early(), c.span(40, 240)),
			c.f("duplicate pod=%s at=%s%s style=two-lines", c.pod(), c.at(), c.span(20, 240)),
		}
	}},
	{name: "containers-end", text: "containers crash, wait and end", faults: func(c *chooser, s *schedule) []string {
		return []string{
			c.f("restart pod=%s container=%s at=%s for=%s", c.pod(), c.container(), c.early(), c.within(5*time.Second, 80*time.Second)),
			c.f("restart pod=%s at=%s for=%s", c.pod(), c.at(), c.within(2*time.Second, 40*time.Second)),
			pick(c.r, []string{c.f("finish pod=%s at=%s", c.pod(), c.at()), c.f("finish pod=%s container=%s at=%s", c.pod(), c.container(), c.at()), c.f("terminate pod=%s at=%s for=%s", c.pod(), c.at(), c.within(10*time.Second, 40*time.Second))}),
		}
	}},
	{name: "clock-steps", text: "the node's clock steps by seconds, often", faults: func(c *chooser, s *schedule) (list []string) {
		at := c.within(c.begun, c.until/2)
		for range 2 + c.r.IntN(3) {
			list = append(list, c.f("clockstep node=%s at=%s by=%s", c.node(), at, signed(c.r, c.within(leastStep, 20*time.Second))))
			at += c.within(500*time.Millisecond, 40*time.Second)
		}
		return append(list, c.f("restart pod=%s at=%s", c.pod(), c.at()))
	}},
	{name: "counter-zero", text: "the CPU counter reads 0, the memory does not", faults: func(c *chooser, s *schedule) []string {
		pod, at := c.pod(), c.early()
		return []string{
			pick(c.r, []string{"restart", "replace"}) + c.f(" pod=%s at=%s", pod, at),
			c.f("zero pod=%s at=%s%s style=cpu", pod, at+c.within(-5*time.Second, 20*time.Second), c.span(5, 60)),
		}
	}},
	{name: "api-late", text: "the API server's facts are 20 to 60 s late", faults: func(c *chooser, s *schedule) []string {
		s.facts, s.lag = true, c.within(20*time.Second, time.Minute)
		return []string{
			pick(c.r, []string{"replace", "restart", "duplicate"}) + c.f(" pod=%s at=%s", c.pod(), c.early()),
			pick(c.r, []string{"replace", "restart", "duplicate"}) + c.f(" pod=%s at=%s", c.pod(), c.at()),
		}
	}},
	{name: "api-frozen", text: "the API server's facts stand still or go back", faults: func(c *chooser, s *schedule) []string {
		s.facts = true
		for range 1 + c.r.IntN(2) {
			from := c.within(c.begun, c.until)
			f := stall{from: from, until: from + c.within(5*time.Second, 2*time.Minute)}
			if c.r.IntN(2) == 0 {
				f.back = c.within(5*time.Second, 2*time.Minute)
			}
			s.stalls = append(s.stalls, f)
		}
		return []string{
			pick(c.r, []string{"replace", "restart", "duplicate"}) + c.f(" pod=%s at=%s", c.pod(), c.early()),
			pick(c.r, []string{"replace", "restart", "duplicate"}) + c.f(" pod=%s at=%s", c.pod(), c.at()),
		}
	}},
	{name: "hidden", text: "containers are missing, and their pods are not", faults: func(c *chooser, s *schedule) []string {
		return []string{
			c.f("missing container=* at=%s%s", c.early(), c.span(5, 90)),
			c.f("restart pod=%s at=%s", c.pod(), c.at()),
		}
	}},
	{name: "replaced-at-once", text: "a pod is created again within seconds", faults: func(c *chooser, s *schedule) []string {
		return []string{
			c.f("replace pod=%s at=%s for=%s", c.pod(), c.early(), c.within(50*time.Millisecond, 3*time.Second)),
			c.f("replace pod=%s at=%s for=%s", c.pod(), c.at(), c.within(50*time.Millisecond, 20*time.Second)),
		}
	}},
	{name: "answers-late", text: "answers come late, out of order, or not", faults: func(c *chooser, s *schedule) []string {
		s.missed, s.late = 0.3*c.r.Float64(), 0.4*c.r.Float64()
		return []string{
			c.f("restart pod=%s at=%s", c.pod(), c.early()),
			c.f("stale pod=%s at=%s%s", c.pod(), c.at(), c.span(5, 90)),
		}
	}},
	{name: "reboots", text: "a node reboots, with a right clock or a wrong one", faults: func(c *chooser, s *schedule) []string {
		list := []string{c.reboot()}
		if c.r.IntN(2) == 0 {
			list = append(list, c.f("restart pod=%s at=%s", c.pod(), c.at()))
		}
		return list
	}},
	{name: "crash-loops", text: "containers crash again and again, and wait longer each time", faults: func(c *chooser, s *schedule) []string {
		return []string{c.crashLoop(c.early()), c.crashLoop(c.at0())}
	}},
	{name: "slow-starts", text: "processes start seconds after their cgroups", faults: func(c *chooser, s *schedule) []string {
		pod := c.pod()
		list := []string{
			c.f("slowstart pod=*/* by=%s", c.within(100*time.Millisecond, 15*time.Second)),
			c.f("restart pod=%s at=%s", pod, c.early()),
			c.f("replace pod=%s at=%s", c.pod(), c.at()),
		}
		if c.r.IntN(4) == 0 {
			// The clock is set between cgroup and process.
			list = append(list, c.f("clockstep node=%s at=%s by=%s", c.node(), c.early(), c.step()))
		}
		return list
	}},
	{name: "roles", text: "pods have init containers, sidecars and ephemeral containers", least: 3, faults: func(c *chooser, s *schedule) []string {
		pod := c.pod()
		return []string{
			c.f("role pod=%s container=proxy style=%s for=%s", pod, pick(c.r, []string{"init", "sidecar"}), c.within(time.Second, 40*time.Second)),
			c.f("role pod=%s container=log-shipper style=%s at=%s for=%s", c.pod(), pick(c.r, []string{"ephemeral", "ephemeral", "init"}), c.early(), c.within(20*time.Second, 4*time.Minute)),
			pick(c.r, []string{"replace", "restart", "duplicate"}) + c.f(" pod=%s at=%s", pod, c.early()),
			c.f("restart pod=%s container=%s at=%s for=%s", c.pod(), c.container(), c.at(), c.within(time.Second, 40*time.Second)),
		}
	}},
	{name: "cut-answers", text: "answers end within a line", faults: func(c *chooser, s *schedule) []string {
		s.cut = 0.1 + 0.3*c.r.Float64()
		return []string{c.f("restart pod=%s at=%s", c.pod(), c.early()), c.f("replace pod=%s at=%s", c.pod(), c.at())}
	}},
}

// early returns a time in the first half of the schedule.
func (c *chooser) early() time.Duration { return c.within(c.begun, c.until/2) }

func signed(r *rand.Rand, d time.Duration) time.Duration {
	if r.IntN(2) == 0 {
		return -d
	}
	return d
}

// newCauseSchedule returns the schedule of a seed for a cause.
func newCauseSchedule(of *cause, seed uint64) (schedule, error) {
	r := rand.New(rand.NewPCG(seed, 7))
	s := schedule{
		seed: seed, cause: of, slack: startSlack,
		options: simulator.Options{Nodes: 1, Pods: 2, Containers: 1 + r.IntN(2), Seed: seed, Fresh: r.IntN(3) == 0},
		views:   []simulator.Endpoint{[]simulator.Endpoint{simulator.Resource, simulator.Summary, simulator.CAdvisor}[seed%3]},
		facts:   r.IntN(3) > 0, second: r.IntN(2) == 0,
		rounds:   16 + r.IntN(12),
		interval: pick(r, []time.Duration{10, 15, 15, 15, 30}) * time.Second,
		changes:  map[int]time.Duration{},
		begins:   time.Duration(1 + r.Int64N(int64(time.Minute))),
	}
	s.options.Start = time.Unix(1_800_000_000+int64(r.IntN(1_000_000)), int64(r.IntN(1e9)))
	if s.facts {
		s.lag = pick(r, []time.Duration{0, 100 * time.Millisecond, time.Second, 4 * time.Second})
	}
	if r.IntN(4) == 0 {
		s.missed = 0.15 * r.Float64()
	}
	if r.IntN(3) == 0 {
		s.wobble = time.Duration(r.Int64N(int64(3 * time.Second)))
	}
	if of.least > 0 {
		s.options.Containers = of.least
	}
	bare, err := simulator.New(s.options)
	if err != nil {
		return s, err
	}
	c := chooser{r: r, fleet: bare, begun: s.begins + s.interval, until: s.begins + time.Duration(s.rounds)*s.interval}
	faults := of.faults(&c, &s)
	if r.IntN(3) == 0 {
		faults = append(faults, pick(r, kinds)(&c))
	}
	return s, s.add(strings.Join(faults, "\n"))
}
