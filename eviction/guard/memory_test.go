package guard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/cmptest"
)

// polledNode is a node whose memory is polled. A poll reads the node's working set plus offset,
// because a poll may read another file than a round.
type polledNode struct {
	*node
	*Guard
	offset  int64
	polls   int
	err     error
	notices []notify.NoticeSource
}

// newPolledNode returns a node that is polled until the end of the test. Each notice is followed by a
// round that ends 2 ms later.
func newPolledNode(t *testing.T, config eviction.ThresholdConfig) *polledNode {
	p := &polledNode{node: newNode(t), offset: 100 * mib}
	p.pod("app", gib)
	p.Guard = p.guard(execute.Observe, config, func(o *Options) {
		o.MemoryLeft = func() *eviction.MemoryLeft {
			p.mu.Lock()
			defer p.mu.Unlock()
			return &eviction.MemoryLeft{At: time.Now(), Available: p.free, Total: 8 * gib, SwapFree: p.free, SwapTotal: 8 * gib}
		}
		o.WorkingSet = func(eviction.Signal) (int64, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.polls++
			return int64(8*gib-p.free) + p.offset, p.err
		}
	})
	p.timer(p.Guard)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.pollMemory(ctx, func(s notify.NoticeSource) {
			p.notices = append(p.notices, s)
			go func() {
				time.Sleep(2 * time.Millisecond)
				p.runRound(ctx, p.notifier, notify.Notice{At: time.Now(), Sources: []notify.NoticeSource{s}})
			}()
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return p
}

// setFree sets the free memory, and waits.
func (p *polledNode) setFree(n uint64, wait time.Duration) {
	p.mu.Lock()
	p.free = n
	p.mu.Unlock()
	time.Sleep(wait)
	synctest.Wait()
}

// newNotices returns the notices since the last call: each threshold, and whether it is met or ended.
func (p *polledNode) newNotices() (list []string) {
	for _, s := range p.notices {
		word := " ended"
		if s.Crossing.Above() {
			word = " met"
		}
		list = append(list, s.Watch.(notify.MemoryPoll).Name+word)
	}
	p.notices = nil
	return list
}

func TestPollsFindACrossing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolledNode(t, hardMemory)
		p.setFree(gib, time.Second)
		cmptest.Equal(t, "at the threshold", []string(nil), p.newNotices())
		p.setFree(gib-1, time.Second)
		cmptest.Equal(t, "below it", []string{"memory.available<1Gi met"}, p.newNotices())
		r := p.Last()
		if r.Decision.Outcome != eviction.OutcomeEvict || r.Notice.Sources[0].Crossing.WorkingSet != 7*gib+1 || r.Notice.Sources[0].Crossing.Figure != 7*gib {
			t.Errorf("got %v on notice of %v", r.Decision.Outcome, r.Notice)
		}
		p.setFree(gib/2, time.Second)
		cmptest.Equal(t, "further below", []string(nil), p.newNotices())
		p.setFree(2*gib, time.Second)
		cmptest.Equal(t, "above it", []string{"memory.available<1Gi ended"}, p.newNotices())
		p.setFree(gib/2, time.Second)
		cmptest.Equal(t, "below it again", []string{"memory.available<1Gi met"}, p.newNotices())
	})
}

// TestThePollsAreOfTheLastRound checks that a poll that differs from the round does not give notice
// again and again: each round corrects it.
func TestThePollsAreOfTheLastRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolledNode(t, hardMemory)
		p.setFree(gib+mib, time.Second)
		p.mu.Lock()
		p.offset += 2 * mib // now the polls see the threshold crossed, and rounds do not
		p.mu.Unlock()
		p.setFree(gib+mib, 10*time.Second)
		cmptest.Equal(t, "with a difference", []string{"memory.available<1Gi met"}, p.newNotices())
		p.setFree(gib-mib, time.Second)
		cmptest.Equal(t, "below it", []string{"memory.available<1Gi met"}, p.newNotices())
	})
}

// TestMemoryChangesDuringARound checks that polls find a crossing after a round during which memory
// was freed or filled: the round's figure is of neither of the two reads of the working set.
func TestMemoryChangesDuringARound(t *testing.T) {
	for name, c := range map[string]struct {
		change          int64
		free, then, end uint64 // before the round, after it, and at last
		want            []string
	}{
		"freed, then filled":          {gib / 4, gib + gib/2, 2 * gib, gib - mib, []string{"memory.available<1Gi met"}},
		"filled, then filled":         {-gib / 4, 2 * gib, gib + gib/2, gib - mib, []string{"memory.available<1Gi met"}},
		"freed below it, then freed":  {gib / 8, gib / 4, gib / 2, gib + mib, []string{"memory.available<1Gi ended"}},
		"filled below it, then freed": {-gib / 8, gib / 2, gib / 4, gib + mib, []string{"memory.available<1Gi ended"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPolledNode(t, hardMemory)
				p.setFree(c.free, time.Second)
				p.change = c.change
				p.timer(p.Guard)
				p.change = 0
				if p.free != c.then {
					t.Fatalf("%d free after the round, want %d", p.free, c.then)
				}
				p.newNotices()
				p.setFree(c.end, time.Second)
				cmptest.Equal(t, "notices", c.want, p.newNotices())
			})
		})
	}
}

// TestTheEndOfASoftThresholdIsLeftToTheTimer checks that a break that no round saw, as in the
// kubelet, does not begin the grace period again.
func TestTheEndOfASoftThresholdIsLeftToTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolledNode(t, softMemory)
		p.setFree(gib/2, time.Second)
		cmptest.Equal(t, "below it", []string{"memory.available<1Gi for 30s met"}, p.newNotices())
		since := p.Last().Decision.Thresholds[0].Since
		p.setFree(2*gib, 5*time.Second)
		p.setFree(gib/2, 5*time.Second)
		cmptest.Equal(t, "a break", []string(nil), p.newNotices())
		if r := p.timer(p.Guard); !r.Decision.Thresholds[0].Since.Equal(since) {
			t.Error("the break began the grace period again")
		}
		p.setFree(2*gib, 0)
		p.timer(p.Guard)
		p.setFree(gib/2, time.Second)
		cmptest.Equal(t, "after a break that a round saw", []string{"memory.available<1Gi for 30s met"}, p.newNotices())
	})
}

// TestPollsFindACrossingOfAnOwnSignal checks that weir's own signals are polled, and that the
// report names what was crossed.
func TestPollsFindACrossingOfAnOwnSignal(t *testing.T) {
	for _, signal := range eviction.OwnSignals() {
		synctest.Test(t, func(t *testing.T) {
			p := newPolledNode(t, eviction.ThresholdConfig{OwnSignals: true, EvictionHard: map[string]string{string(signal): "1Gi"}})
			p.setFree(gib, time.Second)
			cmptest.Equal(t, "at the threshold", []string(nil), p.newNotices())
			p.setFree(gib-1, 200*time.Millisecond)
			cmptest.Equal(t, "below it", []string{string(signal) + "<1Gi met"}, p.newNotices())
			r := p.Last()
			if r.Decision.Outcome != eviction.OutcomeEvict || len(r.Watching) != 1 || r.Watching[0] != r.Notice.Sources[0].Watch || len(r.Unwatched) != 0 {
				t.Errorf("got %v on notice of %+v, watching %+v, unwatched %v", r.Decision.Outcome, r.Notice, r.Watching, r.Unwatched)
			}
		})
	}
}

// TestAHardThresholdAfterASoftOne checks that both give notice.
func TestAHardThresholdAfterASoftOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := softMemory
		config.EvictionHard = map[string]string{"memory.available": "200Mi"}
		p := newPolledNode(t, config)
		p.setFree(gib/2, time.Second)
		p.setFree(100*mib, time.Second)
		cmptest.Equal(t, "notices", []string{"memory.available<1Gi for 30s met", "memory.available<200Mi met"}, p.newNotices())
	})
}

// TestPollsThatFail checks that rounds report the error, and that nothing is polled without a
// figure to compare with.
func TestPollsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolledNode(t, hardMemory)
		p.mu.Lock()
		p.err, p.polls = errors.New("no meminfo"), 0
		p.mu.Unlock()
		p.setFree(gib/2, time.Second)
		cmptest.Equal(t, "notices", []string(nil), p.newNotices())
		if p.polls == 0 {
			t.Error("not tried again")
		}
		r := p.timer(p.Guard)
		if r.Decision.Outcome != eviction.OutcomeEvict || len(r.memory) != 0 || r.memoryErr == nil || r.memoryErr.Error() != "poll memory.available: no meminfo" {
			t.Errorf("got %v, polls of %v: %v", r.Decision.Outcome, r.memory, r.memoryErr)
		}
		p.err, p.readErr = nil, errors.New("no cgroups")
		p.timer(p.Guard)
		p.polls = 0
		p.setFree(gib/2, 10*time.Second)
		if p.polls != 0 {
			t.Errorf("%d polls without a figure", p.polls)
		}
	})
}

// TestACrossingIsDecidedByMemory checks that a crossing is decided without the rest of the pods'
// figures, and that the decision is always that of a read of everything.
func TestACrossingIsDecidedByMemory(t *testing.T) {
	config := eviction.ThresholdConfig{EvictionHard: map[string]string{"memory.available": "1Gi", "nodefs.available": "10%", "pid.available": "1000"}}
	notice := notify.Notice{At: time.Now(), Sources: []notify.NoticeSource{{Watch: notify.MemoryPoll{}, Crossing: &notify.Crossing{WorkingSet: 2, Figure: 1}}}}
	decided, full := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		n := newNode(t)
		processes := map[string]uint64{}
		for i := range 1 + random.IntN(5) {
			name := fmt.Sprintf("p%d", i)
			n.pod(name, random.Uint64N(2*gib))
			n.pods[i].Spec.Priority = new(random.Int32N(3))
			processes[name] = random.Uint64N(100)
		}
		n.free, n.freeDisk = random.Uint64N(2*gib), random.Uint64N(20*gib)
		tasks := 31000 + random.Int64N(1500)
		read := func(ctx context.Context) (*stats.Summary, error) {
			s, err := n.read(ctx)
			s.Node.Rlimit = &stats.RlimitStats{Time: metav1.Now(), MaxPID: new(int64(32768)), NumOfRunningProcesses: &tasks}
			return s, err
		}
		whole := func(ctx context.Context) (*stats.Summary, error) {
			s, err := read(ctx)
			for i := range s.Pods {
				s.Pods[i].ProcessStats = &stats.ProcessStats{ProcessCount: new(processes[s.Pods[i].PodRef.Name])}
			}
			return s, err
		}
		reads := 0
		counted := func(ctx context.Context) (*stats.Summary, error) {
			reads++
			return whole(ctx)
		}
		want := n.guard(execute.Observe, config, func(o *Options) { o.Read = whole }).readAndDecide(t.Context(), notice).Decision
		got := n.guard(execute.Observe, config, func(o *Options) { o.Read, o.ReadMemory = counted, read }).readAndDecide(t.Context(), notice).Decision
		words := func(d *eviction.Decision) (list []string) {
			list = append(list, fmt.Sprint(d.Outcome, d.Acting, d.Victim))
			for _, p := range d.Ranking {
				list = append(list, p.Pod.Name+" "+p.SkipMessage)
			}
			for _, k := range d.Kills {
				list = append(list, fmt.Sprint(k.Pod.Name, " for ", k.Signal))
			}
			return list
		}
		cmptest.Equal(t, fmt.Sprintf("seed %d", seed), words(want), words(got))
		if byMemory := n.free < gib; byMemory == (reads > 0) {
			t.Errorf("seed %d: %d reads of everything, %d free", seed, reads, n.free)
		}
		decided, full = decided+1-min(reads, 1), full+min(reads, 1)
	}
	if decided < 50 || full < 50 {
		t.Errorf("%d decisions by memory, %d by all", decided, full)
	}
	n := newNode(t)
	n.pod("app", gib)
	n.free = gib / 2
	reads := 0
	g := n.guard(execute.Observe, config, func(o *Options) {
		o.ReadMemory = func(context.Context) (*stats.Summary, error) {
			reads++
			return nil, errors.New("read without a crossing")
		}
	})
	for range 2 {
		if r := n.timer(g); r.Decision.Outcome != eviction.OutcomeEvict || r.ReadErr != nil || reads != 1 {
			t.Errorf("without a crossing: %v, %v; memory was read alone %d times, want once, by the first round", r.Decision.Outcome, r.ReadErr, reads)
		}
	}
}

// TestACrossingEndsTheWaitOfASoftThreshold checks that the wait for a pod with the grace period of a
// soft threshold ends when a poll finds a hard one, not only after PollInterval.
func TestACrossingEndsTheWaitOfASoftThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		config := softMemory
		config.EvictionHard = map[string]string{"memory.available": "200Mi"}
		n.free = 100 * mib
		g := n.guard(execute.Kill, config)
		g.notifyCrossing(n.notifier, notify.NoticeSource{Watch: notify.MemoryPoll{}})
		began, checked := time.Now(), false
		ctx, stop := context.WithCancel(t.Context())
		everyPoll(ctx, g.crossed, func() {
			checked = g.hardThresholdNow(ctx)
			stop()
		})
		if !checked || time.Since(began) != 0 {
			t.Errorf("checked %v after %s, want at once", checked, time.Since(began))
		}
	})
}

// TestMemoryIsNear checks when the guard prepares a kill: a little above a hard threshold, and earlier
// if memory is filled quickly.
func TestMemoryIsNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolledNode(t, hardMemory)
		drain := func() {
			for len(p.near) > 0 {
				<-p.near
			}
		}
		step := func(what string, free uint64, want bool) {
			t.Helper()
			p.setFree(free, 3*time.Second) // two seconds later it does not grow any more
			drain()
			p.setFree(free, time.Second)
			if got := len(p.near) > 0; got != want {
				t.Errorf("%s: near %v, want %v", what, got, want)
			}
			p.setFree(4*gib, 3*time.Second)
			drain()
		}
		step("at rest", 4*gib, false)
		step("200 MiB above the threshold", gib+200*mib, false)
		step("100 MiB above the threshold", gib+100*mib, true)
		for free := uint64(4 * gib); free >= 5*gib/2; free -= 100 * mib {
			p.setFree(free, 500*time.Millisecond)
		}
		if len(p.near) == 0 {
			t.Error("1.5 GiB above the threshold, filled by 200 MiB in a second: not near, want that it is")
		}
	})
}

// TestPrepareTriesItsOwnPod checks that policies are tried by weir's own pod.
func TestPrepareTriesItsOwnPod(t *testing.T) {
	n := newNode(t)
	n.pod("app", gib)
	n.pod("weir", gib)
	x, err := execute.New(execute.Options{Mode: execute.Kill, Client: n.client, Node: "n1", Self: "uid-weir", Namespace: "weir-agents", KillAtOnce: func(context.Context, types.UID) (bool, error) { return true, nil }})
	if err != nil {
		t.Fatal(err)
	}
	g := n.guard(execute.Kill, hardMemory, func(o *Options) { o.Executor = x })
	ctx, cancel := context.WithCancel(t.Context())
	tried := make(chan string, 1)
	n.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteActionImpl)
		tried <- fmt.Sprint(d.Namespace, "/", d.Name, " ", d.DeleteOptions.DryRun)
		cancel()
		return true, nil, errors.New("no")
	})
	wake(g.near)
	g.publishLoop(ctx)
	if got, want := <-tried, "web/weir [All]"; got != want {
		t.Errorf("tried %s, want %s", got, want)
	}
}
