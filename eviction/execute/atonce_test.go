package execute

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/eviction"
)

// self is the agent's own pod.
var self = eviction.PodIdentity{Namespace: "weir-agents", Name: "weir-agent-1", UID: "uid-weir"}

// agentAtOnce returns an Executor that kills at once, on a node of the cluster. Its server logs the kills
// among the requests for pods. The last value has the requests before each kill.
func (c *cluster) agentAtOnce(t *testing.T, name string, fail error) (*Executor, *server, *[]string) {
	t.Helper()
	var s *server
	var x *Executor
	var before []string
	x, s = c.agentOf(t, name, Kill, Options{CleanupTimeout: time.Millisecond, KillAtOnce: func(_ context.Context, uid types.UID) (bool, error) {
		for _, a := range s.client.Actions() {
			before = append(before, a.GetVerb()+" "+a.GetResource().Resource)
		}
		s.addLine("kill %s", uid)
		return fail == nil, fail
	}})
	return x, s, &before
}

// TestAKillAtOnceWaitsForNoRequest kills while memory was near its threshold before: the API server is
// asked nothing between the decision and the kill, and has the rest right after.
func TestAKillAtOnceWaitsForNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		x, s, before := c.agentAtOnce(t, "n1", nil)
		x.Prepare(t.Context(), self)
		if got, want := c.entries(), "n1*"; got != want {
			t.Errorf("near the threshold the Leases are of %q, want %q", got, want)
		}
		s.client.ClearActions()
		s.log = nil
		o := only(t, x.Execute(t.Context(), decision(0, killOf("shop", 1))))
		diff(t, "requests before the kill", []string(nil), *before)
		diff(t, "what was done", []string{"kill", "get", "patch", "delete", "get"}, verbs(s.log))
		diff(t, "result", Killed, o.Result)
		diff(t, "words", "deleted pod web/shop with a grace period of 1 s, for memory.available; its processes were killed before that; it was gone after 1s", o.Message)
		time.Sleep(leaseTime)
		x.ExpireLease(t.Context())
		if got, want := c.entries(), "n1*"; got != want {
			t.Errorf("a minute after the kill the Leases are of %q, want %q", got, want)
		}
	})
}

// TestAKillAtOnceIsBraked kills without a place that was obtained before: the Lease is written first, and a
// stopped agent kills nothing.
func TestAKillAtOnceIsBraked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 100, leases: map[string]*coordinationv1.Lease{}}
		x, s, before := c.agentAtOnce(t, "n1", nil)
		if o := only(t, x.Execute(t.Context(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("%s: %s", o.Result, o.Message)
		}
		diff(t, "requests before the kill", []string{"delete pods", "list nodes", "list nodes", "list leases", "patch leases", "list leases"}, *before)
		diff(t, "what was done", []string{"kill", "get", "patch", "delete", "get"}, verbs(s.log))
		for i := range 6 {
			c.enter(fmt.Sprint("other-", i))
		}
		y, s, _ := c.agentAtOnce(t, "n2", nil)
		y.Prepare(t.Context(), self)
		if o := only(t, y.Execute(t.Context(), decision(0, killOf("shop", 1)))); o.Result != Stopped || len(s.log) > 0 {
			t.Errorf("after six others: %s: %s, and it did %q; want it to be stopped", o.Result, o.Message, s.log)
		}
	})
}

// TestClaimsCount lets all nodes of a cluster be near a threshold that is wrong, and then below it.
func TestClaimsCount(t *testing.T) {
	f := func(nodes, claims, kills int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{nodes: nodes, leases: map[string]*coordinationv1.Lease{}}
			var agents []*Executor
			killed, done := 0, map[int]bool{}
			for i := range min(nodes, 80) {
				x, _ := c.agentOf(t, fmt.Sprintf("n%d", i), Kill, Options{CleanupTimeout: time.Millisecond, CleanupPoll: time.Millisecond, KillAtOnce: func(context.Context, types.UID) (bool, error) {
					if done[i] {
						return false, errors.New("it has no processes")
					}
					done[i] = true
					killed++
					return true, nil
				}})
				x.Prepare(t.Context(), self)
				agents = append(agents, x)
			}
			if got := len(c.leases); got != claims {
				t.Errorf("%d of %d nodes claimed a place, want %d", got, nodes, claims)
			}
			for began := time.Now(); time.Since(began) < actedTime; time.Sleep(30 * time.Second) {
				shortage(t, agents, 0)
			}
			if killed != kills {
				t.Errorf("%d pods were killed in ten minutes on %d nodes, want %d", killed, nodes, kills)
			}
		})
	}
	f(3, 1, 3)
	f(100, 1, 6)
	f(1000, 10, 51)
}

// TestAnUnusedClaimEnds lets memory stay near its threshold: others may have the place after a minute, and
// the node claims it again a minute later.
func TestAnUnusedClaimEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		x, _, _ := c.agentAtOnce(t, "n1", nil)
		step := func(wait time.Duration, want string, writes int) {
			t.Helper()
			time.Sleep(wait)
			x.ExpireLease(t.Context())
			x.Prepare(t.Context(), self)
			if got := c.entries(); got != want || c.writes != writes {
				t.Errorf("%v later the Leases are of %q after %d writes, want %q after %d", wait, got, c.writes, want, writes)
			}
		}
		step(0, "n1*", 1)
		step(leaseTime-time.Second, "n1*", 1)
		step(time.Second, "", 1)
		step(leaseTime-time.Second, "", 1)
		step(time.Second, "n1*", 2)
	})
}

// TestPrepareAsksSeldom has an API server that does not answer, and an account that no policy confines.
func TestPrepareAsksSeldom(t *testing.T) {
	for what, c := range map[string]*cluster{"no answer": {fail: context.DeadlineExceeded}, "no policies": {unconfined: true}} {
		synctest.Test(t, func(t *testing.T) {
			c.nodes, c.leases = 3, map[string]*coordinationv1.Lease{}
			x, s, _ := c.agentAtOnce(t, "n1", nil)
			x.Prepare(t.Context(), self)
			asked := len(s.client.Actions())
			for range 29 {
				time.Sleep(time.Second)
				x.Prepare(t.Context(), self)
			}
			if got := len(s.client.Actions()); asked == 0 || got != asked || len(c.leases) > 0 {
				t.Errorf("%s: %d requests at first, %d after half a minute, Leases of %q; want no more, and none", what, asked, got, c.entries())
			}
		})
	}
}

// TestAKillThatFailsIsADeletion lets the processes be out of reach.
func TestAKillThatFailsIsADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		x, s, _ := c.agentAtOnce(t, "n1", errors.New("permission denied"))
		o := only(t, x.Execute(t.Context(), decision(0, killOf("shop", 1))))
		diff(t, "what was done", []string{"kill", "get", "patch", "delete", "get"}, verbs(s.log))
		diff(t, "words", "deleted pod web/shop with a grace period of 1 s, for memory.available; its processes could not be killed at once: permission denied; it was gone after 1s", o.Message)
	})
}

// TestAKilledPodIsDeleted lets the kubelet report first that the pod has ended, and lets the API server
// refuse: the kill counts then, too.
func TestAKilledPodIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		x, s, _ := c.agentAtOnce(t, "n1", nil)
		s.before = func(verb string, _ int) error {
			if verb == "get" {
				for _, p := range s.pods {
					p.Status.Phase = corev1.PodFailed
				}
			}
			return nil
		}
		if o := only(t, x.Execute(t.Context(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("a pod that has failed: %s: %s; want it deleted", o.Result, o.Message)
		}
		y, s, _ := c.agentAtOnce(t, "n2", nil)
		s.before = func(verb string, _ int) error {
			if verb != "delete" {
				return nil
			}
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}}
		}
		o := only(t, y.Execute(t.Context(), decision(0, killOf("shop", 1))))
		if o.Result != Failed || !strings.HasSuffix(o.Message, "; its processes were killed before that") {
			t.Errorf("%s: %s; want it to have failed, and to say that the processes were killed", o.Result, o.Message)
		}
		if got, want := c.entries(), "n1* n2"; got != want {
			t.Errorf("the Leases are of %q, want %q", got, want)
		}
	})
}

// TestOnlyKillsForMemoryAreAtOnce checks that all other evictions are as without the option.
func TestOnlyKillsForMemoryAreAtOnce(t *testing.T) {
	f := func(mode Mode, signal string, grace time.Duration, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			killed := 0
			s := newServer(pod("app"))
			x := executor(t, s, func(o *Options) {
				o.Mode = mode
				o.KillAtOnce = func(context.Context, types.UID) (bool, error) { killed++; return true, nil }
			})
			k := killOf("app", 1)
			k.Signal = signal
			o := only(t, x.Execute(t.Context(), decision(grace, k)))
			if killed != want {
				t.Errorf("mode %s, %s, grace period %v: killed %d times at once, want %d: %s", mode, signal, grace, killed, want, o.Message)
			}
		})
	}
	f(Kill, "memory.available", 0, 1)
	f(Kill, "swap.available", 0, 1)
	f(Kill, "pid.available", 0, 1)
	f(Kill, "memory.available", time.Minute, 0)
	f(Kill, "nodefs.available", 0, 0)
	f(Kill, eviction.EmptyDirLimit, 0, 0)
	f(Evict, "memory.available", 0, 0)
	f(Observe, "memory.available", 0, 0)
}
