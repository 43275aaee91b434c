//go:build e2e

package apis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const (
	// The number of pairs of Deployments, and how many times the load of each pair
	// is changed, alternating up and down.
	pairs, steps = 5, 4
	// betweenReads is how often both servers read the node, each at its own times.
	betweenReads = 15 * time.Second
	// apart is the time between two steps of a pair. Steps fall on every second of
	// these 15 s.
	apart     = 3*betweenReads + time.Second
	staggered = betweenReads / pairs
)

// step is how long it took until a change of load changed the number of
// replicas.
type step struct {
	pair       int
	up         bool
	weir, peer reaction
}

// reaction is how long it took until the number of replicas first changed, and
// until it was the right one.
type reaction struct{ first, final time.Duration }

// TestAutoscalerSteps compares weir's Autoscaler with the cluster's own, which
// uses metrics-server. Both follow the same steps of load, each with its own
// Deployments. The test measures which is faster.
func TestAutoscalerSteps(t *testing.T) {
	t.Parallel()
	w := sharedCluster
	w.resourceMetricsFrom(t, theirs)
	namespace := w.namespace(t, "steps")
	seen := w.watchScales(t, namespace)
	for i := range pairs {
		for _, name := range []string{ofWeir(i), ofPeer(i)} {
			w.loadable(t, namespace, name)
		}
		w.autoscaler(t, namespace, ofWeir(i), "Active", following(ofWeir(i), 5, onCPU(50)))
		w.autoscale(t, namespace, ofPeer(i), following(ofPeer(i), 5, onCPU(50)))
	}
	for i := range pairs {
		w.weirKnowsCPU(t, namespace, ofWeir(i))
		w.knowsCPU(t, namespace, ofPeer(i))
	}

	begin := time.Now()
	results := make(chan []step, pairs)
	failures := make(chan error, pairs)
	for i := range pairs {
		go func() {
			done, err := w.walk(t.Context(), seen, namespace, i, begin.Add(time.Duration(i)*staggered))
			results <- done
			failures <- err
		}()
	}
	var all []step
	for range pairs {
		all = append(all, <-results...)
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
	for _, up := range []bool{true, false} {
		judgeSteps(t, slices.DeleteFunc(slices.Clone(all), func(s step) bool { return s.up != up }), up)
	}
	// Each Deployment was scaled only by its own autoscaler.
	for i := range pairs {
		for name, want := range map[string]string{ofWeir(i): weirUser, ofPeer(i): hpaController} {
			writes := w.audit(t, namespace, func(e *auditv1.Event) bool { return ofScale(e, name) })
			others := slices.DeleteFunc(slices.Clone(writes), func(e auditv1.Event) bool { return e.User.Username == want })
			if len(writes) < steps || len(others) > 0 {
				t.Errorf("%s: %d writes of its scale, %d of them not by %s", name, len(writes), len(others), want)
			}
		}
	}
}

func ofWeir(pair int) string { return fmt.Sprintf("weir-%d", pair) }
func ofPeer(pair int) string { return fmt.Sprintf("peer-%d", pair) }

// walk takes a pair through its steps, the first at begin.
func (w *testCluster) walk(ctx context.Context, seen *scales, namespace string, pair int, begin time.Time) (done []step, err error) {
	for i := range steps {
		if err := until(ctx, begin.Add(time.Duration(i)*apart)); err != nil {
			return done, err
		}
		s, want, load := step{pair: pair, up: i%2 == 0}, int32(many), busy
		if !s.up {
			want, load = few, idle
		}
		type side struct {
			name string
			took *reaction
		}
		sides := []side{{ofWeir(pair), &s.weir}, {ofPeer(pair), &s.peer}}
		if i/2%2 == 1 {
			slices.Reverse(sides) // neither is always the first
		}
		for _, side := range sides { // a Deployment may have reached its number of replicas just now
			if err := w.settle(ctx, namespace, side.name); err != nil {
				return done, err
			}
		}
		changed := make([]time.Time, len(sides))
		for j, side := range sides {
			changed[j] = time.Now()
			if err := w.load(ctx, namespace, side.name, load); err != nil {
				return done, fmt.Errorf("load %s: %w", side.name, err)
			}
		}
		for j, side := range sides {
			first, final, err := seen.waitForReplicas(ctx, side.name, want, changed[j], 3*time.Minute)
			if err != nil {
				return done, err
			}
			*side.took = reaction{first.Sub(changed[j]), final.Sub(changed[j])}
		}
		done = append(done, s)
	}
	return done, nil
}

// until waits until a time.
func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judgeSteps logs the steps of one direction, and checks that weir is not later
// than the cluster's autoscaler by a read of the node.
func judgeSteps(t *testing.T, all []step, up bool) {
	t.Helper()
	direction := map[bool]string{true: "up", false: "down"}[up]
	if want := pairs * steps / 2; len(all) < want {
		t.Errorf("%d steps %s were measured, want %d", len(all), direction, want)
	}
	if len(all) == 0 {
		return
	}
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "pair\tweir first\tweir final\tpeer first\tpeer final\t")
	for _, s := range all {
		fmt.Fprintf(out, "%d\t%.1fs\t%.1fs\t%.1fs\t%.1fs\t\n", s.pair,
			s.weir.first.Seconds(), s.weir.final.Seconds(), s.peer.first.Seconds(), s.peer.final.Seconds())
	}
	column := func(of func(step) time.Duration, q float64) time.Duration {
		var d []time.Duration
		for _, s := range all {
			d = append(d, of(s))
		}
		return quantile(d, q)
	}
	row := func(name string, q float64) (weir, peer time.Duration) {
		weir, peer = column(func(s step) time.Duration { return s.weir.final }, q), column(func(s step) time.Duration { return s.peer.final }, q)
		fmt.Fprintf(out, "%s\t%.1fs\t%.1fs\t%.1fs\t%.1fs\t\n", name,
			column(func(s step) time.Duration { return s.weir.first }, q).Seconds(), weir.Seconds(),
			column(func(s step) time.Duration { return s.peer.first }, q).Seconds(), peer.Seconds())
		return weir, peer
	}
	weir50, peer50 := row("median", 0.5)
	row("worst", 1)
	out.Flush()
	t.Logf("from a change of load to a new count of replicas, %d steps %s, an Autoscaler of weir's and its peer, an HPA on metrics-server:\n%s",
		len(all), direction, &table)
	if limit := peer50 + betweenReads; weir50 > limit {
		t.Errorf("scaling %s: weir's median is %v, its peer's %v: want at most %v", direction, weir50, peer50, limit)
	}
}
