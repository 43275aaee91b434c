package execute

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// cluster is an API server with a number of nodes, and the Leases of their agents.
type cluster struct {
	nodes  int
	leases map[string]*coordinationv1.Lease
	writes int
	fail   error // the answer to requests for Leases
	// failRead is the answer to a list that must be newer than the API server's cache.
	failRead error
	// beforeWrite is called before a Lease is written, if it is not nil.
	beforeWrite func()
	// unconfined says that no admission policy applies to the agents.
	unconfined bool
	// clocks have how far the clocks of nodes are ahead.
	clocks map[string]time.Duration
}

// agentOf returns an Executor on a node of the cluster, and its server of pods.
func (c *cluster) agentOf(t *testing.T, name string, mode Mode, o Options) (*Executor, *server) {
	t.Helper()
	on := pod("shop", func(p *corev1.Pod) { p.Spec.NodeName = name })
	s := newServer(on)
	s.linger = time.Millisecond
	s.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		more := int64(c.nodes - 1)
		return true, &corev1.NodeList{ListMeta: metav1.ListMeta{RemainingItemCount: &more}, Items: make([]corev1.Node, 1)}, nil
	})
	s.client.PrependReactor("*", "pods", c.policies)
	s.client.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o, err := c.react(a, name)
		return true, o, err
	})
	o.Mode, o.Client, o.Node, o.Self, o.Namespace = mode, s.client, name, "uid-weir", "weir-agents"
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return x, s
}

// policies answers dry runs as the admission policies do.
func (c *cluster) policies(a clienttesting.Action) (bool, runtime.Object, error) {
	var options *metav1.DeleteOptions
	switch a := a.(type) {
	case clienttesting.DeleteActionImpl:
		options = &a.DeleteOptions
	case clienttesting.CreateActionImpl:
		options = a.Object.(*policyv1.Eviction).DeleteOptions
	}
	if options == nil || len(options.DryRun) == 0 {
		return false, nil, nil
	}
	if c.unconfined {
		return true, nil, nil
	}
	refusal := apierrors.NewForbidden(corev1.Resource("pods"), "shop", errors.New("ValidatingAdmissionPolicy 'weir-agents-pods' with binding 'weir-agents-pods' denied request: an agent gives a pod a second to end, at the least"))
	refusal.ErrStatus.Reason, refusal.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity // as the API server's
	return true, nil, refusal
}

// react answers an agent's request for Leases. The times in Leases that an agent writes are those of
// its node's clock, and those that it reads are changed by the same difference the other way, because
// the agents of a test have one clock.
func (c *cluster) react(a clienttesting.Action, node string) (runtime.Object, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	switch a := a.(type) {
	case clienttesting.ListActionImpl:
		if c.failRead != nil && a.ListOptions.ResourceVersion == "" {
			return nil, c.failRead
		}
		list := &coordinationv1.LeaseList{}
		for _, l := range c.leases {
			if !a.ListRestrictions.Fields.Matches(fields.Set{"metadata.name": l.Name}) || !a.ListRestrictions.Labels.Matches(labels.Set(l.Labels)) {
				continue
			}
			l = l.DeepCopy()
			shift(l, -c.clocks[node])
			list.Items = append(list.Items, *l)
		}
		return list, nil
	case clienttesting.PatchActionImpl:
		l := &coordinationv1.Lease{}
		if err := json.Unmarshal(a.Patch, l); err != nil || a.PatchType != types.ApplyPatchType {
			return nil, fmt.Errorf("unexpected patch of type %s: %w", a.PatchType, err)
		}
		shift(l, c.clocks[node])
		return c.write(l)
	case clienttesting.DeleteActionImpl:
		stored, p := c.leases[a.Name], a.DeleteOptions.Preconditions
		switch {
		case stored == nil:
			return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), a.Name)
		case p != nil && p.ResourceVersion != nil && *p.ResourceVersion != stored.ResourceVersion:
			return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), a.Name, errors.New("the object has been modified"))
		}
		delete(c.leases, a.Name)
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected request %v", a)
}

// shift changes the time of a Lease.
func shift(l *coordinationv1.Lease, by time.Duration) {
	if t := l.Spec.RenewTime; t != nil {
		shifted := metav1.NewMicroTime(t.Add(by))
		l.Spec.RenewTime = &shifted
	}
}

func (c *cluster) write(l *coordinationv1.Lease) (runtime.Object, error) {
	if c.beforeWrite != nil {
		c.beforeWrite()
	}
	c.writes++
	l.ResourceVersion = strconv.Itoa(c.writes)
	c.leases[l.Name] = l
	return l.DeepCopy(), nil
}

// enter writes the Lease of a node that evicted without a place.
func (c *cluster) enter(node string) {
	_, _ = c.write(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeasePrefix + node, Labels: map[string]string{leaseLabel: ""}}})
}

// entries returns the nodes that have an entry; those that hold a place have a star.
func (c *cluster) entries() string {
	var nodes []string
	for name, l := range c.leases {
		node := strings.TrimPrefix(name, LeasePrefix)
		if l.Spec.HolderIdentity != nil {
			node += "*"
		}
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return strings.Join(nodes, " ")
}

// shortage lets every node of a cluster decide to evict a pod at the same time, and returns how many
// did.
func shortage(t *testing.T, agents []*Executor, grace time.Duration) (evicted int) {
	t.Helper()
	for _, x := range agents {
		if o := only(t, x.Execute(context.Background(), decision(grace, killOf("shop", 1)))); o.Result.PodLeaves() {
			evicted++
		}
	}
	return evicted
}

// TestFewNodesEvictAtATime has a threshold that is wrong on every node of a cluster.
func TestFewNodesEvictAtATime(t *testing.T) {
	f := func(mode Mode, grace time.Duration, nodes, atOnce, inAll int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{nodes: nodes, leases: map[string]*coordinationv1.Lease{}}
			var agents []*Executor
			for i := range min(nodes, 80) {
				x, _ := c.agentOf(t, fmt.Sprintf("n%d", i), mode, Options{CleanupTimeout: time.Millisecond, CleanupPoll: time.Millisecond})
				agents = append(agents, x)
			}
			evicted, first := 0, -1
			for began := time.Now(); time.Since(began) < actedTime; {
				now := shortage(t, agents, grace)
				evicted += now
				if first < 0 {
					first = now
				}
				time.Sleep(30 * time.Second)
			}
			if first > atOnce || first == 0 {
				t.Errorf("mode %s: %d of %d nodes evicted at once, want at most %d", mode, first, nodes, atOnce)
			}
			if evicted > inAll || evicted == 0 {
				t.Errorf("mode %s: %d pods were evicted in ten minutes on %d nodes, want at most %d", mode, evicted, nodes, inAll)
			}
		})
	}
	soft, hard := time.Minute, time.Duration(0)
	f(Evict, soft, 3, 1, 3)
	f(Evict, soft, 100, 1, 6)
	f(Evict, soft, 1000, 10, 60)
	f(Kill, soft, 100, 1, 6)
	f(Kill, hard, 3, 3, 3)
	f(Kill, hard, 100, 6, 6)
	f(Kill, hard, 1000, 51, 51)
}

// TestClocksOfNodesDiffer has three nodes that all want to evict. One clock is behind the others by more
// than a node may evict, and one is ahead by more than evictions count.
func TestClocksOfNodesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}, clocks: map[string]time.Duration{"n0": -61 * time.Second, "n2": 11 * time.Minute}}
		var agents []*Executor
		for i := range 3 {
			x, _ := c.agentOf(t, fmt.Sprintf("n%d", i), Evict, Options{CleanupTimeout: time.Millisecond, CleanupPoll: time.Millisecond})
			agents = append(agents, x)
		}
		if got := shortage(t, agents, time.Minute); got != 1 {
			t.Errorf("%d of 3 nodes evicted at once, want 1", got)
		}
		time.Sleep(leaseTime)
		shortage(t, agents[2:], time.Minute)
		if got, want := c.entries(), "n0* n2*"; got != want {
			t.Errorf("a minute later the entries are of %s, want %s", got, want)
		}
	})
}

// TestStoppedNodesSayIt lets more nodes act than may, and looks at what the next one says.
func TestStoppedNodesSayIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 100, leases: map[string]*coordinationv1.Lease{}}
		for i := range 6 {
			c.enter(fmt.Sprint("other-", i))
		}
		var recorded events
		x, s := c.agentOf(t, "n1", Kill, Options{Recorder: &recorded})
		o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1))))
		if o.Result != Stopped || !strings.Contains(o.Message, "6 of 100 nodes evicted pods within 10m0s, so all agents only observe") {
			t.Errorf("%s: %s", o.Result, o.Message)
		}
		if len(recorded) != 1 || !strings.Contains(recorded[0], ReasonStopped) {
			t.Errorf("Events: %q, want one %s", recorded, ReasonStopped)
		}
		if wrote := s.wrote(); len(wrote) > 0 {
			t.Errorf("it wrote %q", wrote)
		}
		time.Sleep(actedTime)
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("when ten minutes have passed: %s: %s", o.Result, o.Message)
		}
	})
}

// TestAnEmergencyNeedsNoLease kills for a hard threshold while another node holds the only Lease, and
// while the API server answers nothing about Leases.
func TestAnEmergencyNeedsNoLease(t *testing.T) {
	f := func(what string, fail error) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
			other, _ := c.agentOf(t, "n2", Kill, Options{CleanupTimeout: time.Millisecond})
			if o := only(t, other.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
				t.Fatalf("%s: the first node: %s: %s", what, o.Result, o.Message)
			}
			c.fail = fail
			x, s := c.agentOf(t, "n1", Kill, Options{CleanupTimeout: time.Millisecond})
			if o := only(t, x.Execute(context.Background(), decision(time.Minute, killOf("shop", 1)))); o.Result != Deferred {
				t.Errorf("%s: a soft threshold: %s: %s", what, o.Result, o.Message)
			}
			if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
				t.Errorf("%s: a hard threshold: %s: %s", what, o.Result, o.Message)
			}
			s.put(pod("shop", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }))
			time.Sleep(20 * time.Second) // longer than MinGap, shorter than the other's Lease
			if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Deferred {
				t.Errorf("%s: the second pod within ten minutes: %s: %s", what, o.Result, o.Message)
			}
		})
	}
	f("another node has the Lease", nil)
	f("the API server refuses", apierrors.NewForbidden(coordinationv1.Resource("leases"), "", errors.New("no")))
	f("the API server does not answer", context.DeadlineExceeded)
}

// TestAnEmergencyIsCounted kills on a node while another has the only place. The first must have a
// Lease before its pod goes, and no longer if its pod does not go.
func TestAnEmergencyIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		other, _ := c.agentOf(t, "n2", Kill, Options{CleanupTimeout: time.Millisecond})
		if o := only(t, other.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Fatalf("the first node: %s: %s", o.Result, o.Message)
		}
		x, s := c.agentOf(t, "n1", Kill, Options{CleanupTimeout: time.Millisecond})
		refuse := true
		s.before = func(verb string, _ int) error {
			if verb != "delete" {
				return nil
			}
			if got, want := c.entries(), "n1 n2*"; got != want {
				t.Errorf("while the pod is deleted the Leases are of %s, want %s", got, want)
			}
			if refuse {
				return apierrors.NewForbidden(corev1.Resource("pods"), "shop", errors.New("no"))
			}
			return nil
		}
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Failed {
			t.Errorf("the API server refuses: %s: %s", o.Result, o.Message)
		}
		if got, want := c.entries(), "n2*"; got != want {
			t.Errorf("when no pod was killed, the Leases are of %s, want %s", got, want)
		}
		refuse = false
		time.Sleep(2 * time.Second) // failedBackoff
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("the API server allows it: %s: %s", o.Result, o.Message)
		}
		if got, want := c.entries(), "n1 n2*"; got != want {
			t.Errorf("afterwards the Leases are of %s, want %s", got, want)
		}
	})
}

// TestAnEmergencyAtASlowServerWaits lets the API server write the Lease and then not answer whether other
// nodes were first.
func TestAnEmergencyAtASlowServerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 100, leases: map[string]*coordinationv1.Lease{}, failRead: context.DeadlineExceeded}
		x, s := c.agentOf(t, "n1", Kill, Options{CleanupTimeout: time.Millisecond})
		began := time.Now()
		o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1))))
		if o.Result != Deferred || o.NotBefore.Sub(began) != busyRetry || len(s.wrote()) > 0 || c.entries() != "" {
			t.Errorf("%s: %s, it wrote %q, and the Leases are of %q; want it to try again after a second", o.Result, o.Message, s.wrote(), c.entries())
		}
		c.beforeWrite = func() { t.Error("it asks again at once") }
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Deferred {
			t.Errorf("at once: %s: %s", o.Result, o.Message)
		}
		c.beforeWrite, c.failRead = nil, nil
		time.Sleep(time.Until(o.NotBefore))
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("when it answers: %s: %s", o.Result, o.Message)
		}
	})
}

// TestTheFirstToWriteIsFirst has nodes that all see no Lease of others before they write theirs.
func TestTheFirstToWriteIsFirst(t *testing.T) {
	f := func(mode Mode, grace time.Duration, nodes int, want []Result) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{nodes: nodes, leases: map[string]*coordinationv1.Lease{}}
			got := make([]Result, len(want))
			var evict func(i int)
			evict = func(i int) {
				x, _ := c.agentOf(t, fmt.Sprintf("n%d", i), mode, Options{CleanupTimeout: time.Millisecond})
				next := sync.OnceFunc(func() {
					if i+1 < len(want) {
						evict(i + 1)
					}
				})
				c.beforeWrite = next
				got[i] = only(t, x.Execute(context.Background(), decision(grace, killOf("shop", 1)))).Result
			}
			evict(0)
			slices.Reverse(got) // the last to read was the first to write
			if !slices.Equal(got, want) {
				t.Errorf("mode %s, in the order of their writes: %v, want %v", mode, got, want)
			}
		})
	}
	f(Evict, time.Minute, 3, []Result{Evicted, Deferred, Deferred})
	f(Evict, time.Minute, 200, []Result{Evicted, Evicted, Deferred})
	f(Kill, 0, 40, []Result{Killed, Killed, Killed, Killed, Killed, Killed, Stopped, Stopped})
}

// TestLeasesEnd lets a node evict, and an agent that starts anew find the Lease of an earlier one.
func TestLeasesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		c.enter("n1")
		x, _ := c.agentOf(t, "n1", Kill, Options{CleanupTimeout: time.Millisecond})
		y, _ := c.agentOf(t, "n2", Kill, Options{CleanupTimeout: time.Millisecond})
		if o := only(t, y.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Fatalf("%s: %s", o.Result, o.Message)
		}
		expire := func(wait time.Duration, want string) {
			t.Helper()
			time.Sleep(wait)
			x.ExpireLease(t.Context())
			y.ExpireLease(t.Context())
			if got := c.entries(); got != want {
				t.Errorf("%v later the Leases are of %q, want %q", wait, got, want)
			}
		}
		expire(time.Minute, "n1 n2*")
		expire(9*time.Minute, "n1") // an agent that starts counts from the time when it first saw its Lease
		expire(time.Minute, "")
	})
}

// TestALeaseBesideAnotherIsGivenBack lets a node kill without a place while the pod of the one that has it
// stays.
func TestALeaseBesideAnotherIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		x, s := c.agentOf(t, "n1", Evict, Options{})
		y, _ := c.agentOf(t, "n2", Kill, Options{})
		s.before = func(verb string, _ int) error {
			if verb != "evict" {
				return nil
			}
			if o := only(t, y.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
				t.Errorf("the other node: %s: %s", o.Result, o.Message)
			}
			return refusal("The disruption budget b needs 1 healthy pods and has 1 currently", 0)
		}
		if o := only(t, x.Execute(context.Background(), decision(time.Minute, killOf("shop", 1)))); o.Result != Blocked {
			t.Fatalf("%s: %s", o.Result, o.Message)
		}
		if got, want := c.entries(), "n2"; got != want {
			t.Errorf("the Leases are of %s, want %s", got, want)
		}
	})
}

// TestALeaseOfAPodThatStaysIsGivenBack asks for the eviction of a pod that a budget protects.
func TestALeaseOfAPodThatStaysIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		x, s := c.agentOf(t, "n1", Evict, Options{})
		s.before = func(verb string, _ int) error {
			if verb == "evict" {
				return refusal("The disruption budget b needs 1 healthy pods and has 1 currently", 0)
			}
			return nil
		}
		if o := only(t, x.Execute(context.Background(), decision(time.Minute, killOf("shop", 1)))); o.Result != Blocked {
			t.Fatalf("%s: %s", o.Result, o.Message)
		}
		y, _ := c.agentOf(t, "n2", Evict, Options{})
		if o := only(t, y.Execute(context.Background(), decision(time.Minute, killOf("shop", 1)))); o.Result != Evicted {
			t.Errorf("another node: %s: %s", o.Result, o.Message)
		}
		if got, want := c.entries(), "n2*"; got != want {
			t.Errorf("the Leases are of %s, want %s", got, want)
		}
	})
}

// TestAnAgentWithoutPoliciesEvictsNothing has an account that the admission policies do not name.
func TestAnAgentWithoutPoliciesEvictsNothing(t *testing.T) {
	for _, mode := range []Mode{Evict, Kill} {
		synctest.Test(t, func(t *testing.T) {
			c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}, unconfined: true}
			x, s := c.agentOf(t, "n1", mode, Options{})
			o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1))))
			if o.Result != Refused || !strings.Contains(o.Message, "no admission policy confines this agent") || c.writes > 0 || len(s.wrote()) > 0 {
				t.Errorf("mode %s: %s: %s, and it wrote %q", mode, o.Result, o.Message, s.wrote())
			}
			c.unconfined = false
			if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); !o.Result.PodLeaves() {
				t.Errorf("mode %s, with policies: %s: %s", mode, o.Result, o.Message)
			}
		})
	}
}
