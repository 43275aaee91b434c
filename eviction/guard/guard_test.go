package guard

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/background"
	"github.com/weir-metrics/weir/test/cmptest"
)

func said(r *Round) (list []string) {
	for _, o := range r.Outcomes {
		list = append(list, o.Message)
	}
	return list
}

// passed returns the pods of the ranking with the reasons why they were skipped.
func passed(r *Round) (list []string) {
	for _, p := range r.Decision.Ranking {
		list = append(list, strings.TrimSpace(p.Pod.Name+" "+p.SkipMessage))
	}
	return list
}

func TestObserveNamesThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", gib)
		n.pod("weir", 3*gib)
		n.pod("ended", 4*gib)
		n.pods[2].Status.Phase = corev1.PodFailed
		g := n.guard(execute.Observe, hardMemory)
		if g.Last() != nil || len(g.RecentActions()) != 0 {
			t.Error("a round before the first")
		}
		if r := n.timer(g); r.Decision.Outcome != eviction.OutcomeNoneInForce || len(g.RecentActions()) != 0 {
			t.Errorf("got %v and %d acts, want calm", r.Decision.Outcome, len(g.RecentActions()))
		}
		n.free = 500 * mib
		time.Sleep(10 * time.Second)
		first := n.timer(g)
		cmptest.Equal(t, "ranking", []string{"weir it is weir's own pod", "app"}, passed(first))
		cmptest.Equal(t, "words", []string{"would evict pod web/app with a grace period of 1 s, for memory.available; the mode is observe"}, said(first))
		if !first.EndedAt.Equal(time.Now()) || first.ReadErr != nil {
			t.Errorf("ended %v, %v", first.EndedAt, first.ReadErr)
		}
		time.Sleep(10 * time.Second)
		second := n.timer(g)
		if acts := g.RecentActions(); len(acts) != 1 || acts[0] != second || !second.RepeatedSince.Equal(first.EndedAt) || !first.RepeatedSince.IsZero() {
			t.Errorf("got %d acts, the last since %v, want the newest of two that say the same since %v", len(acts), second.RepeatedSince, first.EndedAt)
		}
		n.pods[0].Namespace = "other"
		time.Sleep(10 * time.Second)
		third := n.timer(g)
		if acts := g.RecentActions(); len(acts) != 2 || acts[0] != third || acts[1] != second {
			t.Errorf("got %d acts, want the newest first", len(acts))
		}
	})
}

func TestWhileAPodLeavesTheRoundIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", 3*gib)
		n.free, n.lingers = 500*mib, "app"
		g := n.guard(execute.Kill, hardMemory)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			n.timer(g)
		}()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		meanwhile := g.Last()
		if meanwhile == nil || meanwhile.Decision.Outcome != eviction.OutcomeEvict || len(meanwhile.Outcomes) > 0 || !meanwhile.EndedAt.IsZero() {
			t.Fatalf("while the pod leaves: %+v", meanwhile)
		}
		<-ended
		cmptest.Equal(t, "words", []string{"deleted pod web/app with a grace period of 1 s, for memory.available; it was gone after 10s"}, said(g.Last()))
		if len(meanwhile.Outcomes) > 0 || g.Last() == meanwhile || len(g.RecentActions()) != 1 {
			t.Error("a round that was shown was changed, or its end is not shown")
		}
	})
}

func TestABlockedPodIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", 2*gib)
		n.pod("small", gib/4)
		n.free, n.budget = 500*mib, "app"
		g := n.guard(execute.Evict, hardMemory)
		r := n.timer(g)
		const reason = "did not evict pod web/app for memory.available: PodDisruptionBudget web/front does not allow it (The disruption budget front needs 2 healthy pods and has 1 currently)"
		cmptest.Equal(t, "words", []string{reason}, said(r))
		cmptest.Equal(t, "next", 10*time.Second, g.nextRound(r).Sub(r.EndedAt))
		time.Sleep(time.Second)
		r = n.timer(g)
		cmptest.Equal(t, "ranking", []string{"app it cannot be evicted now: " + reason, "small"}, passed(r))
		cmptest.Equal(t, "words", []string{"evicted pod web/small with a grace period of 1 s, for memory.available; it was gone after 1s"}, said(r))
		time.Sleep(time.Minute)
		n.budget = ""
		r = n.timer(g)
		cmptest.Equal(t, "words", []string{"evicted pod web/app with a grace period of 1 s, for memory.available; it was gone after 1s"}, said(r))
	})
}

// TestABudgetDoesNotHoldUpAHardThreshold checks that in mode kill a budget that blocks a soft
// threshold does not block a hard one.
func TestABudgetDoesNotHoldUpAHardThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", 2*gib)
		n.free, n.budget = 500*mib, "app"
		config := softMemory
		config.EvictionHard = map[string]string{"memory.available": "200Mi"}
		g := n.guard(execute.Kill, config)
		r := n.timer(g)
		cmptest.Equal(t, "next, when the grace period is over", 30*time.Second, g.nextRound(r).Sub(r.EndedAt))
		time.Sleep(30 * time.Second)
		if r = n.timer(g); len(r.Outcomes) != 1 || r.Outcomes[0].Result != execute.Blocked {
			t.Errorf("got %v, want it blocked", said(r))
		}
		time.Sleep(time.Second)
		if r = n.timer(g); r.Decision.Outcome != eviction.OutcomeNoCandidate {
			t.Errorf("got %v, want nobody to go", r.Decision.Outcome)
		}
		n.free, n.budget = 100*mib, ""
		time.Sleep(time.Second)
		r = n.timer(g)
		cmptest.Equal(t, "words", []string{"deleted pod web/app with a grace period of 1 s, for memory.available; it was gone after 1s"}, said(r))
	})
}

// TestAPodThatDoesNotEndIsPassedOver checks that a pod that does not terminate is skipped, also in
// mode kill, which could only delete it again.
func TestAPodThatDoesNotEndIsPassedOver(t *testing.T) {
	f := func(name string, mode execute.Mode, change func(*node), result execute.Result) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				n.pod("app", 2*gib)
				n.pod("small", gib/4)
				n.free = 500 * mib
				change(n)
				g := n.guard(mode, hardMemory)
				if r := n.timer(g); len(r.Outcomes) != 1 || r.Outcomes[0].Pod.Name != "app" || r.Outcomes[0].Result != result || r.Outcomes[0].Removed {
					t.Errorf("got %v, want it to be %s, and not to end", said(r), result)
				}
				time.Sleep(10 * time.Second)
				if r := n.timer(g); len(r.Outcomes) != 1 || r.Outcomes[0].Pod.Name != "small" {
					t.Errorf("got %v, want the next to go", said(r))
				}
			})
		})
	}
	ends := func(seconds int64) func(*node) {
		return func(n *node) {
			n.pods[0].DeletionTimestamp, n.pods[0].DeletionGracePeriodSeconds = new(metav1.Now()), &seconds
		}
	}
	stays := func(n *node) { n.lingers, n.linger = "app", time.Hour }
	f("terminating", execute.Evict, ends(3600), execute.Terminating)
	f("terminating, with the shortest grace period", execute.Kill, ends(1), execute.Terminating)
	f("evicted", execute.Evict, stays, execute.Evicted)
	f("killed", execute.Kill, stays, execute.Killed)
}

// TestAHardThresholdEndsTheWaitOfASoftOne checks that the guard does not wait for a pod with the
// grace period of a soft threshold while a hard threshold is met.
func TestAHardThresholdEndsTheWaitOfASoftOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", 2*gib)
		n.pods[0].Spec.TerminationGracePeriodSeconds = new(int64(60))
		n.free, n.lingers, n.linger = 500*mib, "app", time.Minute
		config := softMemory
		config.EvictionHard = map[string]string{"memory.available": "200Mi"}
		g := n.guard(execute.Kill, config)
		n.timer(g)
		time.Sleep(30 * time.Second)
		evicted, read := time.Now(), g.opts.Read
		g.opts.Read = func(ctx context.Context) (*stats.Summary, error) {
			if time.Since(evicted) > 15*time.Second {
				n.free = 100 * mib
			}
			return read(ctx)
		}
		r := n.timer(g)
		cmptest.Equal(t, "words", []string{"evicted pod web/app with a grace period of 60 s, for memory.available; after 16s it was still in the API: stopped waiting for it"}, said(r))
		time.Sleep(10 * time.Second)
		n.pods[0].DeletionGracePeriodSeconds = new(int64(60))
		r = n.timer(g)
		if len(r.Outcomes) != 1 || r.Outcomes[0].Result != execute.Killed || r.Outcomes[0].GraceSeconds != 1 {
			t.Errorf("got %v, want its time to end shortened", said(r))
		}
	})
}

// TestAPodThatMayNotGoIsPassedOver checks that the next pod is evicted if the API server's answer
// concerns the pod. If there is no usable answer, it is not.
func TestAPodThatMayNotGoIsPassedOver(t *testing.T) {
	f := func(name string, change func(*node), result execute.Result, next string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			for _, mode := range []execute.Mode{execute.Evict, execute.Kill} {
				synctest.Test(t, func(t *testing.T) {
					n := newNode(t)
					n.pod("app", 2*gib)
					n.pod("small", gib/4)
					n.free = 500 * mib
					change(n)
					g := n.guard(mode, hardMemory)
					if r := n.timer(g); len(r.Outcomes) != 1 || r.Outcomes[0].Pod.Name != "app" || r.Outcomes[0].Result != result {
						t.Errorf("mode %s: got %v, want app %s", mode, said(r), result)
					}
					time.Sleep(500 * time.Millisecond)
					if r := n.timer(g); len(r.Outcomes) != 1 || r.Outcomes[0].Pod.Name != next {
						t.Errorf("mode %s: got %v, want %s to be next", mode, said(r), next)
					}
				})
			}
		})
	}
	answer := func(err error) func(*node) { return func(n *node) { n.answer = err } }
	f("forbidden", answer(apierrors.NewForbidden(corev1.Resource("pods"), "app", errors.New("by policy"))), execute.Failed, "small")
	f("no answer", answer(errors.New("connection refused")), execute.Failed, "app")
	f("a server in trouble", answer(apierrors.NewInternalError(errors.New("no leader"))), execute.Failed, "app")
	f("an overloaded server", answer(apierrors.NewTooManyRequests("busy", 0)), execute.Failed, "app")
	live := func(change func(p *corev1.Pod)) func(*node) {
		return func(n *node) {
			is := n.pods[0].DeepCopy()
			change(is)
			n.live = is
		}
	}
	f("replaced", live(func(p *corev1.Pod) { p.UID = "uid-new" }), execute.Gone, "small")
	f("ended", live(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), execute.Gone, "small")
	f("elsewhere", live(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), execute.Refused, "small")
}

func TestAnAverageSettlesBeforeTheNextGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", 2*gib)
		n.pod("small", gib)
		n.stall = 40
		g := n.guard(execute.Kill, eviction.ThresholdConfig{Pressure: []string{"memory.pressure.some.avg10>20"}})
		if r := n.timer(g); len(r.Outcomes) != 1 || !r.Outcomes[0].Result.PodLeaves() {
			t.Fatalf("got %v, want a pod to go", said(r))
		}
		time.Sleep(12 * time.Second) // this is longer than the executor's own gap
		r := n.timer(g)
		if r.Decision.Outcome != eviction.OutcomeSettling {
			t.Errorf("got %v, want it to settle", r.Decision.Outcome)
		}
		cmptest.Equal(t, "next", 8*time.Second, g.nextRound(r).Sub(r.EndedAt))
		time.Sleep(8 * time.Second)
		if r := n.timer(g); len(r.Outcomes) != 1 || r.Outcomes[0].Pod.Name != "small" {
			t.Errorf("got %v, want the next to go", said(r))
		}
	})
}

func TestDisksAreReadAgainBeforeAnEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("was", 3*gib)
		n.pod("is", gib)
		g := n.guard(execute.Observe, hardDisk)
		if n.timer(g); n.refreshes != 0 {
			t.Error("disks were read again with half of them free")
		}
		n.freeDisk = 11 * gib
		n.timer(g)
		g.refreshes.Wait()
		if n.refreshes != 1 || n.reads != 2 {
			t.Errorf("near the threshold: %d refreshes and %d reads, want 1 and 2", n.refreshes, n.reads)
		}
		time.Sleep(refreshInterval)
		n.freeDisk = 9 * gib
		n.refreshed = func() { n.usage["is"] = 4 * gib }
		r := n.timer(g)
		cmptest.Equal(t, "ranking", []string{"is", "was"}, passed(r))
		time.Sleep(10 * time.Second)
		if n.timer(g); n.refreshes != 2 {
			t.Errorf("got %d refreshes, want 2: one in 30 s", n.refreshes)
		}
	})
}

func TestACollectionIsFollowedByARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", gib)
		n.freeDisk = 5 * gib
		g := n.guard(execute.Observe, hardDisk)
		r := n.timer(g)
		cmptest.Equal(t, "words", []string{
			"would remove every ended container for nodefs.available; the mode is observe",
			"would remove every unused image for nodefs.available; the mode is observe",
		}, said(r))
		if r.Decision.Outcome != eviction.OutcomeReclaim || r.Decision.Victim < 0 {
			t.Errorf("got %v and pod %d, want the kubelet to remove first, and the pod named", r.Decision.Outcome, r.Decision.Victim)
		}
		// The kubelet removed them, and that did not suffice.
		time.Sleep(kubeletReclaims)
		cmptest.Equal(t, "words", []string{
			"would remove every ended container for nodefs.available; the mode is observe",
			"would remove every unused image for nodefs.available; the mode is observe",
			"would evict pod web/app with a grace period of 1 s, for nodefs.available; the mode is observe",
		}, said(n.timer(g)))
		read := g.opts.Read
		n.reads = 0
		n.refreshed = nil
		g.opts.Read = func(ctx context.Context) (*stats.Summary, error) {
			if n.reads == 1 { // the read after the collection
				n.freeDisk = 50 * gib
			}
			return read(ctx)
		}
		time.Sleep(5 * time.Second)
		r = n.timer(g)
		if r.Decision.Outcome != eviction.OutcomeReclaimed || len(r.Outcomes) != 2 {
			t.Errorf("got %v, %v; want the collection to suffice", r.Decision.Outcome, said(r))
		}
	})
}

func TestReadErrorsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.pod("app", gib)
		n.free = 500 * mib
		n.layoutErr = errors.New("no runtime")
		g := n.guard(execute.Observe, softMemory)
		if r := n.timer(g); r.Decision.Outcome != eviction.OutcomeNoLayout {
			t.Errorf("got %v, want no layout", r.Decision.Outcome)
		}
		n.layoutErr = nil
		n.timer(g)
		time.Sleep(20 * time.Second)
		n.readErr = errors.New("no cgroups")
		r := n.timer(g)
		if r.Decision.Outcome != eviction.OutcomeNoSummary || r.Decision.Err.Error() != "read the summary: no cgroups" || n.layouts != 2 {
			t.Errorf("got %v: %v, after %d questions for the layout", r.Decision.Outcome, r.Decision.Err, n.layouts)
		}
		time.Sleep(20 * time.Second)
		n.readErr, n.podsErr = nil, errors.New("no API server")
		r = n.timer(g)
		if r.Decision.Outcome != eviction.OutcomeNoPods || r.ReadErr.Error() != "list the node's pods: no API server" {
			t.Errorf("got %v: %v; want no pods, in the grace period that lasted", r.Decision.Outcome, r.ReadErr)
		}
		n.podsErr = nil
		time.Sleep(time.Second)
		if r = n.timer(g); len(r.Outcomes) != 1 || r.ReadErr != nil {
			t.Errorf("got %v, %v; want a pod to go", said(r), r.ReadErr)
		}
	})
}

// TestGracePeriodsDoNotFollowTheClock checks that all times have a monotonic reading, so that a
// change of the clock neither ends nor extends a grace period.
func TestGracePeriodsDoNotFollowTheClock(t *testing.T) {
	n := newNode(t)
	n.pod("app", gib)
	n.free = 500 * mib
	state := n.timer(n.guard(execute.Observe, softMemory)).Decision.State
	for what, at := range map[string]time.Time{
		"since": state.Thresholds[0].Since, "condition": state.Conditions[0].MetAt, "figure": state.LastMeasured[0].Time, "notifiers": state.NotifiersAt,
	} {
		if !strings.Contains(at.String(), " m=") {
			t.Errorf("%s: %v has no monotonic reading", what, at)
		}
	}
}

func TestRun(t *testing.T) {
	n := newNode(t)
	published := make(chan *eviction.Decision, 100)
	g := n.guard(execute.Observe, hardMemory, func(o *Options) {
		o.Notify.MaxInterval, o.Notify.MinInterval = time.Millisecond, time.Nanosecond
		o.Publish = func(_ context.Context, d *eviction.Decision) {
			select {
			case published <- d:
			default:
			}
		}
	})
	background.Run(t, g.Run)
	for range 3 {
		if d := <-published; d.Outcome != eviction.OutcomeNoneInForce {
			t.Errorf("published %v", d.Outcome)
		}
	}
	if err := g.Run(t.Context()); err == nil || err.Error() != "guard the node: it is guarded already" {
		t.Errorf("a second Run: %v", err)
	}
}

// TestADiskIsPeekedAt checks that polling finds a full disk long before the timer, because the
// kernel gives no notice of a disk.
func TestADiskIsPeekedAt(t *testing.T) {
	n := newNode(t)
	published := make(chan *eviction.Decision, 100)
	var full atomic.Bool
	g := n.guard(execute.Observe, eviction.ThresholdConfig{EvictionHard: map[string]string{"nodefs.available": "10Gi"}}, func(o *Options) {
		o.Notify.MaxInterval = time.Hour
		o.Publish = func(_ context.Context, d *eviction.Decision) { published <- d }
		read := func(ctx context.Context) (*stats.Summary, error) {
			s, err := n.read(ctx)
			if full.Load() {
				s.Node.Fs.AvailableBytes = new(uint64(9 * gib))
			}
			return s, err
		}
		o.Read, o.Poll = read, read
	})
	stop := background.Run(t, g.Run)
	cmptest.Equal(t, "met before", false, (<-published).Thresholds[0].Met)
	full.Store(true)
	cmptest.Equal(t, "met after", true, (<-published).Thresholds[0].Met)
	stop()
	if last := g.Last(); g.thresholdsChanged(t.Context(), last) {
		t.Error("a threshold that stays met brings another round")
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	n := newNode(t)
	whole := n.guard(execute.Observe, hardMemory).opts
	f := func(change func(*Options), want string) {
		t.Helper()
		opts := whole
		change(&opts)
		if _, err := New(opts); err == nil || !strings.HasPrefix(err.Error(), "guard the node: "+want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(o *Options) { o.Read = nil }, "nothing reads the node")
	f(func(o *Options) { o.Settings = nil }, "there are no thresholds")
	f(func(o *Options) { o.Executor = nil }, "nothing carries out decisions")
}

func TestWatches(t *testing.T) {
	n := newNode(t)
	config := eviction.ThresholdConfig{
		EvictionHard:            map[string]string{"memory.available": "1Gi", "nodefs.available": "10%"},
		EvictionSoft:            map[string]string{"memory.available": "25%"},
		EvictionSoftGracePeriod: map[string]string{"memory.available": "30s"},
		EnforceNodeAllocatable:  []string{"pods"},
		Pressure:                []string{"memory.pressure.some.avg10>5", "memory.pressure.some.avg60>5 for 1m", "io.pressure.full.avg10>40"},
	}
	names := func(list []notify.Watch) (names []string) {
		for _, w := range list {
			names = append(names, w.String())
		}
		return names
	}
	g := n.guard(execute.Observe, config, func(o *Options) {
		o.WorkingSet = func(s eviction.Signal) (int64, error) {
			if s == eviction.AllocatableMemoryAvailable {
				return 0, errors.New("there is no cgroup of all pods")
			}
			return int64(8*gib - n.free), nil
		}
	})
	triggers := []string{"some stalled for 100ms in 2s (/proc/pressure/memory)", "full stalled for 800ms in 2s (/proc/pressure/io)"}
	polls, kernel, unwatched := g.watches(n.timer(g))
	cmptest.Equal(t, "polls", []string{"memory.available<1Gi (/proc/meminfo)", "memory.available<25% for 30s (/proc/meminfo)"}, names(polls))
	cmptest.Equal(t, "triggers", triggers, names(kernel))
	if len(unwatched) != 1 || unwatched[0].Error() != "poll allocatableMemory.available: there is no cgroup of all pods" {
		t.Errorf("unwatched %v, want the memory of all pods", unwatched)
	}
	g.opts.WorkingSet = nil
	polls, kernel, unwatched = g.watches(n.timer(g))
	cmptest.Equal(t, "without polls", triggers, names(kernel))
	if len(polls)+len(unwatched) != 0 {
		t.Errorf("without polls: %v and %v", polls, unwatched)
	}
}
