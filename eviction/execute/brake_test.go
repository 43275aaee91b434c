package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// cluster is an API server with a number of nodes, and the Leases of their agents.
type cluster struct {
	nodes  int
	leases map[string]*coordinationv1.Lease
	writes int
	fail   error // the answer to requests for Leases
	// beforeWrite is called before a Lease is written, if it is not nil.
	beforeWrite func(stored *coordinationv1.Lease)
	// unconfined says that no admission policy applies to the agents.
	unconfined bool
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
		o, err := c.react(a)
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

func (c *cluster) react(a clienttesting.Action) (runtime.Object, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	switch a := a.(type) {
	case clienttesting.ListActionImpl:
		list := &coordinationv1.LeaseList{}
		for _, l := range c.leases {
			list.Items = append(list.Items, *l.DeepCopy())
		}
		return list, nil
	case clienttesting.CreateActionImpl:
		return c.write(a.Object.(*coordinationv1.Lease), true)
	case clienttesting.UpdateActionImpl:
		return c.write(a.Object.(*coordinationv1.Lease), false)
	}
	return nil, fmt.Errorf("unexpected request %v", a)
}

func (c *cluster) write(l *coordinationv1.Lease, create bool) (runtime.Object, error) {
	stored := c.leases[l.Name]
	if c.beforeWrite != nil {
		c.beforeWrite(stored)
	}
	switch {
	case create && stored != nil:
		return nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), l.Name)
	case !create && (stored == nil || stored.ResourceVersion != l.ResourceVersion):
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), l.Name, errors.New("the object has been modified"))
	}
	c.writes++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.Itoa(c.writes)
	c.leases[l.Name] = l
	return l.DeepCopy(), nil
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

// TestStoppedNodesSayIt lets more nodes act than may, and looks at what the next one says.
func TestStoppedNodesSayIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 100, leases: map[string]*coordinationv1.Lease{}}
		acted := map[string]time.Time{}
		for i := range 6 {
			acted[fmt.Sprint("other-", i)] = time.Now().Add(-time.Minute)
		}
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeasePrefix + "0"}}
		setActed(l, acted)
		c.leases[l.Name] = l
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

// TestAnEmergencyIsCounted kills on a node while another has the only Lease. The first must be in that
// Lease before its pod goes, and no longer if its pod does not go.
func TestAnEmergencyIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{nodes: 3, leases: map[string]*coordinationv1.Lease{}}
		other, _ := c.agentOf(t, "n2", Kill, Options{CleanupTimeout: time.Millisecond})
		if o := only(t, other.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Fatalf("the first node: %s: %s", o.Result, o.Message)
		}
		x, s := c.agentOf(t, "n1", Kill, Options{CleanupTimeout: time.Millisecond})
		entries := func() string {
			return fmt.Sprint(slices.Sorted(maps.Keys(actedNodes(c.leases[LeasePrefix+"0"], time.Now()))))
		}
		refuse := true
		s.before = func(verb string, _ int) error {
			if verb != "delete" {
				return nil
			}
			if got := entries(); got != "[n1 n2]" {
				t.Errorf("while the pod is deleted the Lease has %s, want n1 and n2", got)
			}
			if refuse {
				return apierrors.NewForbidden(corev1.Resource("pods"), "shop", errors.New("no"))
			}
			return nil
		}
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Failed {
			t.Errorf("the API server refuses: %s: %s", o.Result, o.Message)
		}
		if got := entries(); got != "[n2]" {
			t.Errorf("when no pod was killed, the Lease has %s, want n2", got)
		}
		refuse = false
		time.Sleep(2 * time.Second) // FailedBackoff
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("the API server allows it: %s: %s", o.Result, o.Message)
		}
		if l := c.leases[LeasePrefix+"0"]; entries() != "[n1 n2]" || *l.Spec.HolderIdentity != "n2" {
			t.Errorf("afterwards %s has the Lease, with %s; want n2, with n1 and n2", *l.Spec.HolderIdentity, entries())
		}
	})
}

// busyCluster returns a cluster in which n2 has the only Lease, and other nodes write it whenever one
// tries to.
func busyCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := &cluster{nodes: nodes, leases: map[string]*coordinationv1.Lease{}}
	other, _ := c.agentOf(t, "n2", Kill, Options{CleanupTimeout: time.Millisecond})
	if o := only(t, other.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
		t.Fatalf("the first node: %s: %s", o.Result, o.Message)
	}
	c.beforeWrite = func(stored *coordinationv1.Lease) {
		time.Sleep(300 * time.Millisecond)
		stored.ResourceVersion += "0"
	}
	return c
}

// TestAnEmergencyAmongManyWaits has other nodes that write the Lease whenever one tries to.
func TestAnEmergencyAmongManyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busyCluster(t, 100)
		x, s := c.agentOf(t, "n1", Kill, Options{CleanupTimeout: time.Millisecond})
		began := time.Now()
		o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1))))
		if took := time.Since(began); o.Result != Deferred || o.NotBefore.Sub(began) > 4*time.Second || took > 3*time.Second || len(s.wrote()) > 0 {
			t.Errorf("after %v: %s: %s, and it wrote %q; want it to try again after a second", took, o.Result, o.Message, s.wrote())
		}
		c.beforeWrite = nil
		time.Sleep(time.Until(o.NotBefore))
		if o := only(t, x.Execute(context.Background(), decision(0, killOf("shop", 1)))); o.Result != Killed {
			t.Errorf("when the others are done: %s: %s", o.Result, o.Message)
		}
	})
}

// TestABusyLeaseIsAskedForAgain asks more often than once in a second after the Lease was busy.
func TestABusyLeaseIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := busyCluster(t, 3)
		x, _ := c.agentOf(t, "n1", Kill, Options{})
		if _, err := x.brake.take(t.Context(), time.Now(), true); !errors.Is(err, errBusy) {
			t.Fatalf("while others write the Lease: %v, want %v", err, errBusy)
		}
		c.beforeWrite = func(*coordinationv1.Lease) { t.Error("it asks again at once") }
		if _, err := x.brake.take(t.Context(), time.Now(), true); !errors.Is(err, errBusy) {
			t.Errorf("at once, in an emergency: %v, want %v", err, errBusy)
		}
		c.beforeWrite = nil
		clear(c.leases)
		var err error
		for range 3 { // for a soft threshold
			time.Sleep(400 * time.Millisecond)
			_, err = x.brake.take(t.Context(), time.Now(), false)
		}
		if err != nil {
			t.Errorf("1.2 s later: %v, want the Lease", err)
		}
	})
}

// TestALeaseThatAnotherEnteredIsGivenBack lets a node enter the Lease of another, whose pod then stays.
func TestALeaseThatAnotherEnteredIsGivenBack(t *testing.T) {
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
		l := c.leases[LeasePrefix+"0"]
		if acted := actedNodes(l, time.Now()); len(acted) != 1 || acted["n2"].IsZero() || l.Spec.HolderIdentity != nil {
			t.Errorf("%v have evicted, want n2 alone; holder %v, want none", acted, l.Spec.HolderIdentity)
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
		if acted := actedNodes(c.leases[LeasePrefix+"0"], time.Now()); len(acted) != 1 {
			t.Errorf("%v have evicted, want n2 alone", acted)
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
