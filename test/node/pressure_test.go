//go:build e2e

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/explain/death"
)

// A takeover is how a mode of weir takes a pod.
type takeover struct {
	result execute.Result
	reason string // of the pod's condition DisruptionTarget
	writes string // what the agent writes; %[1]s is the pod
	cause  death.Cause
}

var (
	byKill = takeover{execute.Killed, execute.ConditionReason, "patch pods/status %[1]s, delete pods %[1]s", death.AgentEviction}
	// The API server writes the condition.
	byEviction = takeover{execute.Evicted, "EvictionByEvictionAPI", "create pods/eviction %[1]s", death.APIEviction}
)

// TestPressure makes the node short of one resource after the other: first with
// weir in mode kill, then with weir in mode observe while the kubelet evicts.
// The same pod must be evicted. Between the two, weir in mode evict must take
// that pod when memory is short.
func TestPressure(t *testing.T) {
	w := sharedCluster
	shortages := []*shortage{w.memoryShortage(), w.diskShortage(t), w.inodeShortage(t)}
	var hard []string
	for _, s := range shortages {
		hard = append(hard, fmt.Sprintf("%s<%d", s.signal, s.weir()))
	}
	killed, evicted := map[string]*crisis{}, map[string]*crisis{}
	t.Run("kill", func(t *testing.T) {
		w.agent(t, "kill", "HARD", strings.Join(hard, ","))
		namespace := w.namespace(t, "kill")
		w.cast(t, namespace, shortages)
		for _, s := range shortages {
			t.Run(s.name, func(t *testing.T) { killed[s.name] = w.testTakeover(t, s, namespace, byKill) })
		}
		t.Run("policies", func(t *testing.T) { w.testPolicies(t, namespace) })
	})
	t.Run("evict", func(t *testing.T) {
		s := shortages[0]
		w.agent(t, "evict", "SOFT", fmt.Sprintf("%s<%d", s.signal, s.weir()))
		namespace := w.namespace(t, "evict")
		w.cast(t, namespace, shortages[:1])
		w.testTakeover(t, s, namespace, byEviction)
	})
	t.Run("observe", func(t *testing.T) {
		w.agent(t, "observe")
		w.seesAll(t, shortages)
		began := time.Now()
		namespace := w.namespace(t, "observe")
		w.cast(t, namespace, shortages)
		for _, s := range shortages {
			t.Run(s.name, func(t *testing.T) { evicted[s.name] = w.testObserve(t, s, namespace) })
		}
		t.Run("audit", func(t *testing.T) { w.wroteOnlyEvents(t, began) })
	})

	var table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "signal\tweir: pod\tmarked\tdeleted\tgone\tkubelet: pod\tmarked\tcondition")
	for _, s := range shortages {
		k, e := killed[s.name], evicted[s.name]
		if k == nil || e == nil {
			continue
		}
		if k.victim.pod != e.victim.pod {
			t.Errorf("%s: weir took %s, and the kubelet %s", s.signal, k.victim.pod, e.victim.pod)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.signal,
			k.victim.pod, k.after(k.victim.target), k.after(k.victim.deletion), k.after(k.victim.gone),
			e.victim.pod, e.after(e.victim.target), e.after(e.pressure))
	}
	tw.Flush()
	t.Logf("from crossing the own threshold:\n%s", table.String())
}

// testTakeover makes weir take a pod before the kubelet does.
func (w *testCluster) testTakeover(t *testing.T, s *shortage, namespace string, by takeover) *crisis {
	began := time.Now()
	c := w.meet(t, s, namespace, s.weir())
	if c.victim.pod != s.victim || c.victim.reason != by.reason {
		t.Errorf("evicted first: %s with reason %q (%s), want %s with %s", c.victim.pod, c.victim.reason, c.victim.message, s.victim, by.reason)
	}
	eventually(t, s.victim+" is gone", time.Minute, func() error {
		if c.victim = c.evicted()[0]; c.victim.gone.IsZero() {
			return fmt.Errorf("it is still there: %+v", c.victim)
		}
		return nil
	})
	for _, x := range c.evicted() {
		if x.reason != by.reason {
			t.Errorf("%s went, and not by weir: %q, %s", x.pod, x.reason, x.message)
		}
	}
	if at, crossed := c.crossings.of(t, s.kubelet); crossed {
		// Other processes of this machine may use memory too.
		t.Logf("the kubelet's threshold was crossed too, %s after weir's", c.after(at.latest))
	}
	w.endedBy(t, namespace+"/"+s.victim, by.cause)
	w.wroteOnly(t, fmt.Sprintf(by.writes, namespace+"/"+s.victim), began)
	eventually(t, "weir says what it did", 20*time.Second, func() error {
		r, err := w.report(t.Context())
		if err != nil {
			return err
		}
		for _, a := range r.Actions {
			if a.Pod == namespace+"/"+s.victim && a.Result == string(by.result) {
				t.Logf("weir: %s (woken by %s; decided after %.1f ms)", a.Message, a.WokenBy, 1000*a.DecidedAfterSeconds)
				return nil
			}
		}
		return fmt.Errorf("it says %q: %+v", r.Summary, r.Actions)
	})
	return c
}

// wroteOnly checks that agents wrote what is wanted, in this order, and nothing
// else but Events. A deletion has preconditions: for the UID and, without the
// Eviction API, for the resource version.
func (w *testCluster) wroteOnly(t *testing.T, want string, since time.Time) {
	t.Helper()
	var actions []string
	for _, e := range w.writes(t, since) {
		if e.ObjectRef.Resource == "events" || e.ObjectRef.Resource == "leases" {
			continue
		}
		var o metav1.DeleteOptions
		var err error
		evicts := e.ObjectRef.Subresource == "eviction"
		switch {
		case e.Verb == "delete":
			err = json.Unmarshal(e.RequestObject.Raw, &o)
		case evicts:
			err = json.Unmarshal(e.RequestObject.Raw, &policyv1.Eviction{DeleteOptions: &o})
		default:
			actions = append(actions, written(&e))
			continue
		}
		if err != nil {
			t.Fatalf("read what was sent to %s: %v: %s", written(&e), err, e.RequestObject.Raw)
		}
		if len(o.DryRun) > 0 { // the agent tries whether the policies refuse it
			if e.ResponseStatus.Code != http.StatusUnprocessableEntity { // of an admission policy
				t.Errorf("a dry run of what the policies forbid has status %d", e.ResponseStatus.Code)
			}
			continue
		}
		actions = append(actions, written(&e))
		if p := o.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil && !evicts {
			t.Errorf("deleted with %s, want preconditions", e.RequestObject.Raw)
		}
		if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds < 1 {
			t.Errorf("deleted with %s, want a second to end at the least", e.RequestObject.Raw)
		}
	}
	if got := strings.Join(actions, ", "); got != want {
		t.Errorf("agents wrote %q, want %q", got, want)
	}
}

// seesAll checks that an agent without its own thresholds has the kubelet's,
// and that the kernel sends it all the notices that it requests.
func (w *testCluster) seesAll(t *testing.T, shortages []*shortage) {
	t.Helper()
	r, err := w.report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unwatched) > 0 {
		t.Errorf("not watched: %q", r.Unwatched)
	}
	limits := map[string]float64{}
	for _, s := range r.Signals {
		for _, threshold := range s.Thresholds {
			if threshold.Limit != nil {
				limits[s.Name] = *threshold.Limit
			}
		}
	}
	for _, s := range shortages {
		if limits[s.signal] != float64(s.kubelet) {
			t.Errorf("%s: weir expects eviction below %.0f, want the kubelet's %d", s.signal, limits[s.signal], s.kubelet)
		}
	}
}

// testObserve makes the kubelet evict, while weir reports which pod it expects.
func (w *testCluster) testObserve(t *testing.T, s *shortage, namespace string) *crisis {
	c := w.meet(t, s, namespace, s.kubelet)
	if c.victim.pod != s.victim || c.victim.reason != corev1.PodReasonTerminationByKubelet {
		t.Errorf("evicted first: %s with reason %q (%s), want %s, whom weir named, with %s",
			c.victim.pod, c.victim.reason, c.victim.message, s.victim, corev1.PodReasonTerminationByKubelet)
	}
	w.endedBy(t, namespace+"/"+s.victim, death.KubeletEviction)
	eventually(t, "the node has "+string(s.condition), time.Minute, func() error {
		at, ok := c.condition(s.condition)
		if !ok {
			return errors.New("it has not")
		}
		c.pressure = at
		return nil
	})
	return c
}

// wroteOnlyEvents checks that agents have written nothing but Events since a
// time.
func (w *testCluster) wroteOnlyEvents(t *testing.T, since time.Time) {
	// A write appears in the log a moment later. When this write is in the log, all
	// earlier ones are too.
	mark := w.namespace(t, "mark")
	eventually(t, "the audit log has a later write", 20*time.Second, func() error {
		all, err := w.Audit(func(e *auditv1.Event) bool { return e.ObjectRef.Resource == "namespaces" && e.ObjectRef.Name == mark })
		if err == nil && len(all) == 0 {
			err = errors.New("it has not")
		}
		return err
	})
	events := 0
	for _, e := range w.writes(t, since) {
		if e.ObjectRef.Resource == "events" {
			events++
			continue
		}
		t.Errorf("an agent that observes did %s", written(&e))
	}
	if events == 0 {
		t.Error("the agent wrote no Event either: would the log have what it writes?")
	}
	t.Logf("an agent that observed wrote %d Events and nothing else", events)
}

// waitForNoPressure returns an error that names the node's pressure conditions.
// Under pressure, the node accepts no pods.
func (w *testCluster) waitForNoPressure(ctx context.Context) error {
	n, err := w.kube.CoreV1().Nodes().Get(ctx, w.Node(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return fmt.Errorf("the node has %s: %s", c.Type, c.Message)
		}
	}
	return nil
}

// crisis is what was seen of one shortage.
type crisis struct {
	*fates
	crossings *crossings
	crossed   time.Time // the threshold of the one that should evict
	victim    fate
	pressure  time.Time // when the node was seen to have the condition
}

// after returns the time from the crossing to at, as text. It is empty if at is
// zero.
func (c *crisis) after(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	if at.Before(c.crossed) {
		return "already"
	}
	return fmt.Sprintf("%.3fs", at.Sub(c.crossed).Seconds())
}

// meet causes a shortage until a pod is evicted: less than threshold is
// available. weir must have named the pod before.
func (w *testCluster) meet(t *testing.T, s *shortage, namespace string, threshold int64) *crisis {
	t.Helper()
	c := &crisis{fates: w.fates(t, namespace)}
	filler, err := w.kube.CoreV1().Pods(namespace).Get(t.Context(), "filler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer orderLoad(t, filler, s.take(0)) // so that the next test has the node in the same state
	taken := w.press(t, s, filler, 0, threshold+s.near, func() error {
		r, err := w.report(t.Context())
		if err != nil {
			return err
		}
		ranking, err := rankingFor(r, s.signal)
		if err == nil && ranking.Next != namespace+"/"+s.victim {
			err = fmt.Errorf("weir names %q for %s, want %s: %s%s", ranking.Next, s.signal, s.victim, ranking.Message, passed(ranking))
		}
		return err
	})
	if all := c.evicted(); len(all) > 0 {
		t.Errorf("%s was evicted too early: %s", all[0].pod, all[0].message)
	}
	c.crossings = s.watch(t, s.kubelet, s.weir())
	w.press(t, s, filler, taken, threshold-s.unit, func() error {
		all := c.evicted()
		if len(all) == 0 {
			lowest, _ := c.crossings.lowest()
			return fmt.Errorf("nobody is evicted, with %d left", lowest)
		}
		c.victim = all[0]
		return nil
	})
	var crossed crossing
	eventually(t, "the shortage is seen", 5*time.Second, func() error {
		var ok bool
		if crossed, ok = c.crossings.of(t, threshold); ok {
			return nil
		}
		// A kill may free the memory before the next reading. Then the crossing follows the
		// lowest reading, which is at most a step of the pressure above the threshold.
		lowest, read := c.crossings.lowest()
		if lowest > threshold+s.step() {
			return fmt.Errorf("%s was evicted, with %d left at the least: %s", c.victim.pod, lowest, c.victim.message)
		}
		crossed = crossing{earliest: read, latest: c.victim.target}
		return nil
	})
	if c.victim.target.Before(crossed.earliest) {
		t.Errorf("%s was evicted at %v, and %d were crossed after %v", c.victim.pod, c.victim.target, threshold, crossed.earliest)
	}
	c.crossed = crossed.latest
	return c
}

// cast creates the pods of the test, makes them use their resources, and waits
// until the kubelet's statistics show that.
//
// The greedy pods have the lowest priority of those that use more than they
// request, and of these they use most. Low has a lower priority, but does not
// use more than it requested. Only for inodes is this different: nobody can
// request inodes, so every pod uses more than it requested.
func (w *testCluster) cast(t *testing.T, namespace string, shortages []*shortage) {
	t.Helper()
	little, plenty := requests(10*mi, mi), requests(600*mi, 400*mi)
	pods := []*corev1.Pod{
		w.pod("greedy-memory", "", little), w.pod("greedy-disk", "", little), w.pod("modest", "", little),
		w.pod("high", "node-test-high", little),
		w.pod("low", "node-test-low", plenty),
		w.pod("filler", "node-test-highest", little),
	}
	takes := map[string]int64{"modest": 1, "high": 4, "low": 4} // in units of the shortage
	running := w.create(t, namespace, pods...)
	for _, s := range shortages {
		for name, units := range takes {
			orderLoad(t, running[name], s.take(units*s.unit))
		}
		if p := running[s.victim]; takes[s.victim] == 0 {
			orderLoad(t, p, s.take(3*s.unit))
		}
	}
	for _, s := range shortages {
		eventually(t, "the kubelet knows what "+s.victim+" takes", time.Minute, func() error {
			used, err := w.used(t.Context(), s, running[s.victim].UID)
			if err == nil && used < 3*s.unit {
				err = fmt.Errorf("it knows of %d, not yet of %d", used, 3*s.unit)
			}
			return err
		})
	}
}
