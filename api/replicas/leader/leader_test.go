package leader

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.uber.org/goleak"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/weir-metrics/weir/test/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leases are the Leases of an API server in one namespace. Updates can conflict, and the API server
// can be unreachable.
type leases struct {
	coordinationv1.LeaseInterface // no other method is called

	mu     sync.Mutex
	lease  *coordination.Lease
	writes int
	away   atomic.Bool
}

var gr = coordination.Resource("leases")

func (l *leases) Leases(string) coordinationv1.LeaseInterface { return l }

func (l *leases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordination.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away.Load():
		return nil, errors.New("connection refused")
	case l.lease == nil:
		return nil, apierrors.NewNotFound(gr, name)
	}
	return l.lease.DeepCopy(), nil
}

func (l *leases) Create(_ context.Context, lease *coordination.Lease, _ metav1.CreateOptions) (*coordination.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != nil {
		return nil, apierrors.NewAlreadyExists(gr, lease.Name)
	}
	return l.put(lease)
}

func (l *leases) Update(_ context.Context, lease *coordination.Lease, _ metav1.UpdateOptions) (*coordination.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease == nil || l.lease.ResourceVersion != lease.ResourceVersion {
		return nil, apierrors.NewConflict(gr, lease.Name, errors.New("it was changed"))
	}
	return l.put(lease)
}

func (l *leases) put(lease *coordination.Lease) (*coordination.Lease, error) {
	if l.away.Load() {
		return nil, errors.New("connection refused")
	}
	l.writes++
	l.lease = lease.DeepCopy()
	l.lease.ResourceVersion = strconv.Itoa(l.writes)
	return l.lease.DeepCopy(), nil
}

// replica runs an Elector named name until end is called.
func replica(t *testing.T, l *leases, name string, ready func() bool) (e *Elector, end func()) {
	t.Helper()
	return readingReplica(t, l, name, ready, nil)
}

// readingReplica is replica with the number of nodes that it reads.
func readingReplica(t *testing.T, l *leases, name string, ready func() bool, reads func() int) (e *Elector, end func()) {
	t.Helper()
	e, err := New(Options{
		Client: l, Namespace: "weir", Name: "weir", Identity: name, Address: name + ":443",
		Certificate: []byte("certificate of " + name), Ready: ready, Reads: reads,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, background.Run(t, e.Run)
}

// says formats the result of Leader.
func says(e *Elector) string {
	address, certificate, self := e.Leader()
	if address == "" {
		return "nobody"
	}
	return fmt.Sprintf("%s, %s, self %t", address, certificate, self)
}

func expect(t *testing.T, when string, e *Elector, want string) {
	t.Helper()
	synctest.Wait()
	if got := says(e); got != want {
		t.Errorf("%s: %s knows %s, want %s", when, e.opts.Identity, got, want)
	}
}

func TestElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		a, endA := replica(t, &l, "a", nil)
		expect(t, "alone", a, "a:443, certificate of a, self true")
		b, endB := replica(t, &l, "b", nil)
		expect(t, "second", b, "a:443, certificate of a, self false")
		time.Sleep(time.Minute)
		expect(t, "a minute later", a, "a:443, certificate of a, self true")
		expect(t, "a minute later", b, "a:443, certificate of a, self false")

		begun := time.Now()
		endA()
		expect(t, "after the end", a, "nobody")
		left, err := l.Get(t.Context(), "weir", metav1.GetOptions{})
		if err != nil || left.Annotations[AddressAnnotation] != "" || *left.Spec.HolderIdentity != "" {
			t.Errorf("a left behind %v held by %q, %v", left.Annotations, *left.Spec.HolderIdentity, err)
		}
		for {
			if _, _, self := b.Leader(); self {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		// A released Lease is valid for one more second, and a candidate looks every 2 to 4.4 s.
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the Lease was given back, and taking it over took %v", took)
		}
		expect(t, "after the change", b, "b:443, certificate of b, self true")
		a, endA = replica(t, &l, "a2", nil)
		expect(t, "back again", a, "b:443, certificate of b, self false")
		endA()
		expect(t, "a candidate left", b, "b:443, certificate of b, self true")
		endB()
	})
}

// While the API server cannot be reached nothing changes, although no Lease is renewed.
func TestAPIServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		a, endA := replica(t, &l, "a", nil)
		synctest.Wait()
		b, endB := replica(t, &l, "b", nil)
		synctest.Wait()
		if !a.IsLeader() || b.IsLeader() {
			t.Errorf("reigns: a %t, b %t; want a alone", a.IsLeader(), b.IsLeader())
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		l.away.Store(true)
		time.Sleep(7 * time.Second) // the last renewal was at most 2 s before
		if !a.IsLeader() {
			t.Error("a does not reign 9 s after it renewed the Lease at the earliest, want it to for 10 s")
		}
		time.Sleep(3 * time.Second) // no other replica can have taken over yet: the Lease is valid for 15 s
		if !a.IsLastKnownLeader() || b.IsLastKnownLeader() {
			t.Errorf("last known leader: a %t, b %t; want a alone", a.IsLastKnownLeader(), b.IsLastKnownLeader())
		}
		if a.IsLeader() {
			t.Error("a reigns 10 s after it renewed the Lease at the latest, want it not to")
		}
		time.Sleep(5 * time.Minute)
		expect(t, "away", a, "a:443, certificate of a, self true")
		expect(t, "away", b, "a:443, certificate of a, self false")
		if !a.IsLastKnownLeader() || b.IsLastKnownLeader() {
			t.Errorf("last known leader after minutes: a %t, b %t; want a alone", a.IsLastKnownLeader(), b.IsLastKnownLeader())
		}
		l.away.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		leaderOfA, _, selfA := a.Leader()
		leaderOfB, _, selfB := b.Leader()
		if leaderOfA != leaderOfB || leaderOfA == "" || selfA == selfB {
			t.Errorf("back again: a knows %s, b knows %s", says(a), says(b))
		}
		if a.IsLeader() != selfA || b.IsLeader() != selfB {
			t.Errorf("back again: a leads %t and reigns %t, b leads %t and reigns %t", selfA, a.IsLeader(), selfB, b.IsLeader())
		}
		if a.IsLastKnownLeader() != selfA || b.IsLastKnownLeader() != selfB {
			t.Errorf("back again: last known leader: a %t, b %t; want %t, %t", a.IsLastKnownLeader(), b.IsLastKnownLeader(), selfA, selfB)
		}
		endA()
		endB()
		if a.IsLastKnownLeader() || b.IsLastKnownLeader() {
			t.Error("a replica that has ended is still the last known leader")
		}
	})
}

// A Lease that cannot be read for a while is logged once, with what follows from it.
func TestUnreadLeaseIsLogged(t *testing.T) {
	f := func(begin time.Duration, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			var l leases
			var lines []string
			e, err := New(Options{
				Client: &l, Namespace: "weir", Name: "weir", Identity: "a", Address: "a:443", Certificate: []byte("c"),
				Logger: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}),
			})
			if err != nil {
				t.Fatal(err)
			}
			l.away.Store(begin == 0)
			stop := background.Run(t, e.Run)
			time.Sleep(begin)
			l.away.Store(true)
			time.Sleep(9 * time.Second) // too short to be logged
			if all := strings.Join(lines, "\n"); strings.Contains(all, "cannot be read") {
				t.Errorf("after 9 s:\n%s", all)
			}
			time.Sleep(5 * time.Minute)
			l.away.Store(false)
			time.Sleep(10 * time.Second)
			stop()
			all := strings.Join(lines, "\n")
			for _, line := range []string{want, `"msg"="the Lease can be read again"`} {
				if strings.Count(all, line) != 1 {
					t.Errorf("want once: %s; got\n%s", line, all)
				}
			}
		})
	}
	f(5*time.Second, `"msg"="the Lease cannot be read: its last known holder goes on to answer and to send, and no replica acts" "error"="connection refused" "leader"="a" "self"=true`)
	f(0, `"msg"="the Lease cannot be read, and no leader is known: this replica does not send until it can be read" "error"="connection refused"`)
}

// When a leader vanishes, another replica takes over after the Lease expires.
func TestLeaderVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		gone := leases{}
		_, endA := replica(t, &l, "a", nil)
		synctest.Wait()
		left, err := l.Get(t.Context(), "weir", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		gone.lease = left // the Lease that a leaves behind
		endA()
		b, endB := replica(t, &gone, "b", nil)
		expect(t, "before the Lease has run out", b, "a:443, certificate of a, self false")
		time.Sleep(25 * time.Second)
		expect(t, "after the Lease has run out", b, "b:443, certificate of b, self true")
		endB()
	})
}

// A replica that is not ready does not lead.
func TestNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		var ready atomic.Bool
		b, endB := replica(t, &l, "b", ready.Load)
		time.Sleep(time.Minute)
		expect(t, "alone and not ready", b, "nobody")
		if _, err := l.Get(t.Context(), "weir", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("who is not ready wrote: %v", err)
		}
		_, endA := replica(t, &l, "a", nil)
		time.Sleep(2 * time.Second)
		expect(t, "not ready", b, "a:443, certificate of a, self false")
		ready.Store(true)
		time.Sleep(10 * time.Second)
		endA()
		time.Sleep(10 * time.Second)
		expect(t, "ready", b, "b:443, certificate of b, self true")
		endB()
		_, end := replica(t, &leases{}, "c", func() bool { return false })
		end()
	})
}

// A leader that reads clearly fewer nodes than another replica gives the Lease up. The two never act
// at the same time, and what the old leader began has time to end.
func TestLeaderThatReadsLessGivesUp(t *testing.T) {
	// The leader writes every 2 s, and the candidate looks every 2 to 4.4 s. At the most, the candidate reads the new
	// number after 2+4.4 s, and is patient until its next look, 4.4 s later. If the leader writes at that moment, it needs
	// another look. The leader reads it after 2 s, and keeps the Lease for 5 s more. The candidate needs two looks to have it.
	const change = (2 + 3*4.4 + 2 + 5 + 2*4.4) * 1000 * time.Millisecond
	for _, test := range []struct {
		reads    int64 // of the leader; the other replica reads 100
		patience time.Duration
	}{{10, time.Minute}, {0, 20 * time.Second}} {
		t.Run(fmt.Sprint(test.reads), func(t *testing.T) {
			testLeaderThatReadsLess(t, test.reads, test.patience, test.patience+change)
		})
	}
}

func testLeaderThatReadsLess(t *testing.T, reads int64, least, most time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		var readsA, readsB atomic.Int64
		readsA.Store(100)
		readsB.Store(100)
		a, endA := readingReplica(t, &l, "a", nil, func() int { return int(readsA.Load()) })
		synctest.Wait()
		b, endB := readingReplica(t, &l, "b", nil, func() int { return int(readsB.Load()) })
		defer endA()
		defer endB()
		time.Sleep(5 * time.Minute)
		expect(t, "both read the same", b, "a:443, certificate of a, self false")

		readsA.Store(reads)
		begun := time.Now()
		var left time.Time
		for !b.IsLeader() {
			synctest.Wait()
			if left.IsZero() && !a.IsLeader() {
				left = time.Now()
			}
			if time.Since(begun) > most {
				t.Fatalf("a reads %d of 100 nodes and still leads after %v: b knows %s", reads, most, says(b))
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begun); took < least {
			t.Errorf("a gave the Lease up after %v, want it to wait for %v", took, least)
		}
		if pause := time.Since(left); left.IsZero() || pause < 5*time.Second || a.IsLeader() {
			t.Errorf("b acts %v after a, want 5s or more", pause)
		}
		time.Sleep(10 * time.Second)
		expect(t, "afterwards", a, "b:443, certificate of b, self false")

		// It does not come back when both read the same again, nor while it reads not many more.
		readsA.Store(100)
		for _, n := range []int64{100, 67} {
			readsB.Store(n)
			time.Sleep(10 * time.Minute)
			expect(t, "both read again", a, "b:443, certificate of b, self false")
		}
	})
}

// Short differences, and replicas that are not ready, change nothing.
func TestLeaderKeepsTheLease(t *testing.T) {
	for what, test := range map[string]struct {
		ready bool
		reads func(since time.Duration) (a, b int)
	}{
		"short differences": {true, func(since time.Duration) (int, int) { // 40 s in each minute
			if since%time.Minute < 40*time.Second {
				return 10, 100
			}
			return 100, 100
		}},
		"short outages": {true, func(since time.Duration) (int, int) { // 15 s in each minute
			if since%time.Minute < 15*time.Second {
				return 0, 100
			}
			return 100, 100
		}},
		"nobody reads":     {true, func(time.Duration) (int, int) { return 0, 0 }},
		"half as many":     {true, func(time.Duration) (int, int) { return 100, 50 }},
		"not ready":        {false, func(time.Duration) (int, int) { return 0, 100 }},
		"not clearly more": {true, func(time.Duration) (int, int) { return 80, 100 }},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l leases
				begun := time.Now()
				_, endA := readingReplica(t, &l, "a", nil, func() int { a, _ := test.reads(time.Since(begun)); return a })
				synctest.Wait()
				b, endB := readingReplica(t, &l, "b", func() bool { return test.ready }, func() int { _, b := test.reads(time.Since(begun)); return b })
				defer endA()
				defer endB()
				for range 30 {
					time.Sleep(time.Minute)
					expect(t, what, b, "a:443, certificate of a, self false")
				}
			})
		})
	}
}

func TestNewNeedsAll(t *testing.T) {
	if _, err := New(Options{Namespace: "weir", Name: "weir"}); err == nil ||
		err.Error() != "an election needs a client, a namespace, a name, an identity, an address and a certificate" {
		t.Errorf("New: %v", err)
	}
}

// TestHolderIsVerified writes a holder into the Lease that is no replica.
func TestHolderIsVerified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l leases
		believes, asked := "", 0
		e, err := New(Options{
			Client: &l, Namespace: "weir", Name: "weir", Identity: "b", Address: "b:443", Certificate: []byte("certificate of b"),
			Verify: func(_ context.Context, identity, address string) error {
				if asked++; identity+" at "+address != believes {
					return errors.New("no such pod")
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		write := func(holder, address string) {
			t.Helper()
			seconds, now := int32(3600), metav1.NowMicro()
			lease := &coordination.Lease{Spec: coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}}
			lease.Annotations = map[string]string{AddressAnnotation: address, CertificateAnnotation: "certificate of " + holder}
			l.mu.Lock()
			_, err := l.put(lease)
			l.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second) // b looks
		}
		background.Run(t, e.Run)
		write("a", "evil:443")
		expect(t, "forged", e, "nobody")
		believes = "a at a:443"
		write("a", "a:443")
		expect(t, "true", e, "a:443, certificate of a, self false")
		before := asked
		write("a", "a:443")
		if asked != before {
			t.Errorf("the same holder was verified %d times more, want none", asked-before)
		}
		write("a", "evil:443")
		expect(t, "forged again", e, "nobody")
		believes = "a at evil:443" // what could not be read before
		time.Sleep(10 * time.Second)
		expect(t, "tried again", e, "evil:443, certificate of a, self false")
	})
}
