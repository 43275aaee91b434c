//go:build e2e

package faults

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/test/commands"
	"github.com/weir-metrics/weir/test/simulator"
)

// TestRotatedAuthority gives all kubelets certificates of another authority. weir's file of certificates
// follows twenty seconds later.
func TestRotatedAuthority(t *testing.T) {
	t.Parallel()
	s := raise(t, options{})
	api := s.serveAPI("127.0.0.1:0")
	beside := s.watchPeer(s.startPeer(api, ""), nobody, 0)
	w := s.watch(commands.Start(t, "weir", s.server(api)...).Address(t), nobody, 0)
	w.complete(30 * time.Second)
	beside.complete(time.Minute)
	began := time.Now()
	s.kubelets.stop()
	s.authority = s.newAuthority()
	s.kubelets = s.serveKubelets(s.kubelets.address)
	time.Sleep(20 * time.Second)
	s.trust(s.authority)
	trusted := time.Now()
	back := w.complete(6 * interval)
	w.end()
	all := w.between(began, time.Now())
	if wrong := all.healthy.wrong; all.failed > 0 || len(wrong) > 0 || all.healthy.fewest != allContainers {
		t.Errorf("%d requests failed, %d numbers were wrong, at least %d containers had a number; want 0, 0, and all %d: %q, %q",
			all.failed, len(wrong), all.healthy.fewest, allContainers, all.errors, wrong)
	}
	record(t, "RotatedAuthority", Result{
		Served: fmt.Sprintf("The last known, at most %s old.", seconds(all.healthy.oldest)),
		Lost:   "the readings in the time in which weir did not have the new certificate",
		Ended:  fmt.Sprintf("all nodes read again %s after the file was replaced, without a restart", seconds(back.Sub(trusted))),
		Peer:   beside.peerResult(began, trusted),
	})
}

// TestAPIServerAway ends the API server for 60 s, in which a third of 3,000 pods is replaced on the
// nodes, and then lets it answer again, so that all these changes come at once.
func TestAPIServerAway(t *testing.T) {
	nightly(t)
	t.Parallel()
	const nodes, pods, away, lasts = 30, 100, 75 * time.Second, 60 * time.Second
	faults, replaced := replacements(t, nodes, pods, func(node, pod int) (time.Duration, bool) {
		return away + 5*time.Second + time.Duration((node*pods+pod)%40)*time.Second, pod%3 == 2
	})
	s := raise(t, options{nodes: nodes, pods: pods, containers: 1, faults: faults})
	api := s.serveAPI("127.0.0.1:0")
	struck := func(it *usage.Item) bool { return replaced[podOf(it)] }
	beside := s.watchPeer(s.startPeer(api, ""), struck, 0)
	w := s.watch(commands.Start(t, "weir", s.server(api)...).Address(t), struck, 0)
	w.complete(away)
	beside.complete(away)
	s.until(away)
	api.stop()
	s.until(away + lasts)
	s.serveAPI(api.address)
	answers := time.Now()
	back := w.complete(10 * interval)
	time.Sleep(2 * interval)
	w.end()
	all, during := w.between(s.start.Add(away), time.Now()), w.between(s.start.Add(away), answers)
	all.check(t, nodes*pods-len(replaced))
	if took := back.Sub(answers); took > 8*interval {
		t.Errorf("all pods had numbers %v after the API server was back, want %v at most", took, 8*interval)
	}
	record(t, "APIServerAway", Result{
		Served: fmt.Sprintf("Pods that were not replaced: right, at most %s old. Replaced pods: %d of %d had a number when fewest had one, none wrong; absent: %s.",
			seconds(all.healthy.oldest), during.other.fewest, len(replaced), during.other.reasonNames()),
		Lost:  "nothing of other pods",
		Ended: fmt.Sprintf("all pods have numbers %s after the API server answers", seconds(back.Sub(answers))),
		Peer:  beside.peerResult(s.start.Add(away), answers),
	})
}

// replacements returns faults that replace pods of a stage of that size, each at the time that when
// returns for its node and its place on the node, and which pods these are.
func replacements(t *testing.T, nodes, pods int, when func(node, pod int) (time.Duration, bool)) (faults []string, replaced map[string]bool) {
	t.Helper()
	still, err := simulator.New(simulator.Options{Nodes: nodes, Pods: pods, Containers: 1, Seed: seedOfStages, Start: time.Now(), Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	replaced = map[string]bool{}
	for i, n := range still.Nodes() {
		for k, p := range n.Pods() {
			if at, ok := when(i, k); ok {
				name := p.Namespace + "/" + p.Name
				replaced[name] = true
				faults = append(faults, fmt.Sprintf("replace pod=%s at=%v", name, at))
			}
		}
	}
	return faults, replaced
}

// podOf returns the pod as in replacements.
func podOf(it *usage.Item) string { return string(it.Namespace) + "/" + string(it.Pod) }

// TestSlowAPIServer lets each request to the API server take three seconds, as when etcd's disk is slow.
func TestSlowAPIServer(t *testing.T) {
	nightly(t)
	t.Parallel()
	const latency, lasts = 3 * time.Second, time.Minute
	s := raise(t, options{})
	api := s.serveAPI("127.0.0.1:0")
	beside := s.watchPeer(s.startPeer(api, ""), nobody, 0)
	weirs, urls := s.startReplicas([]*endpoint{api, api})
	w := s.watch(weirs[1].Address(t), nobody, 0)
	w.complete(30 * time.Second)
	beside.complete(time.Minute)
	began := time.Now()
	s.latency.Store(int64(latency))
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var l lists
	l.ask(ctx, urls[1], "reader", false, 100*time.Millisecond)
	s.latency.Store(0)
	over := time.Now()
	back := w.complete(2 * interval)
	w.end()
	all := w.between(began, time.Now())
	all.check(t, allContainers)
	l.check(t, allPods)
	if leadsNow(weirs[1]) {
		t.Error("the other replica leads")
	}
	record(t, "SlowAPIServer", Result{
		Served: fmt.Sprintf("Right, at most %s old. %d LISTs to the replica that does not lead had all pods; the slowest took %s.", seconds(all.healthy.oldest), l.made, seconds(l.slowest)),
		Lost:   "nothing",
		Ended:  fmt.Sprintf("all numbers after %s; the leader is the same", seconds(back.Sub(over))),
		Peer:   beside.peerResult(began, over),
	})
}

// startReplicas starts a replica for each endpoint of the API server. The first one leads.
func (s *stage) startReplicas(apis []*endpoint) (replicas []*commands.Process, urls []string) {
	s.t.Helper()
	for i, api := range apis {
		url, arguments := secure(s.t)
		pod := []string{fmt.Sprintf("POD_NAME=weir-%d", i), "POD_NAMESPACE=weir-system", "POD_IP=127.0.0.1"}
		replica := commands.StartWith(s.t, pod, "weir", s.server(api, arguments...)...)
		replica.Address(s.t)
		if i == 0 { // it is ready first, and leads
			leads(s.t, replica, 30*time.Second)
		}
		replicas, urls = append(replicas, replica), append(urls, url)
	}
	return replicas, urls
}

// TestLeader lets the leader of two replicas fail. Each replica has an endpoint of the API server of its
// own, so that one can be cut off.
func TestLeader(t *testing.T) {
	for _, f := range []struct {
		name string
		fail func(t *testing.T, leader *commands.Process, api *endpoint)
		lost string
	}{
		{"killed", func(t *testing.T, leader *commands.Process, _ *endpoint) { leader.Kill(t) }, "no number"},
		{"paused", func(t *testing.T, leader *commands.Process, _ *endpoint) {
			leader.Signal(t, syscall.SIGSTOP)
			t.Cleanup(func() { leader.Signal(t, syscall.SIGCONT) })
		}, "no number"},
		{"cut-off", func(_ *testing.T, _ *commands.Process, api *endpoint) { api.stop() }, "no number"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := raise(t, options{})
			apis := []*endpoint{s.serveAPI("127.0.0.1:0"), s.serveAPI("127.0.0.1:0")}
			weirs, urls := s.startReplicas(apis)
			w := s.watch(weirs[1].Address(t), nobody, 0)
			w.complete(30 * time.Second)
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var l lists
			var asks sync.WaitGroup
			asks.Go(func() { l.ask(ctx, urls[1], "reader", false, 100*time.Millisecond) })
			f.fail(t, weirs[0], apis[0])
			const lease = 15 * time.Second
			took := leads(t, weirs[1], lease+10*time.Second)
			if took > lease+9*time.Second { // a candidate tries every 2 to 4.4 s, and needs two tries
				t.Errorf("the other replica led after %v, want at most the Lease's %v and 9 s", took, lease)
			}
			time.Sleep(interval)
			cancel()
			asks.Wait()
			w.end()
			all := w.between(began, time.Now())
			all.check(t, allContainers)
			l.check(t, allPods)
			record(t, "Leader/"+f.name, Result{
				Served: fmt.Sprintf("Right: %d LISTs to the other replica had all pods, at most %s old. The slowest took %s.", l.made, seconds(all.healthy.oldest), seconds(l.slowest)),
				Lost:   f.lost,
				Ended:  fmt.Sprintf("the other replica leads after %s", seconds(took)),
			})
		})
	}
}

// TestLeaderWithoutNodes replaces the leader's file of kubelets' certificates with a wrong one, so that
// it reads no node. The other replica reads all.
func TestLeaderWithoutNodes(t *testing.T) {
	nightly(t)
	t.Parallel()
	s := raise(t, options{})
	api := s.serveAPI("127.0.0.1:0")
	var leader, other *commands.Process
	var files [2]string
	var url string
	for i, replica := range []**commands.Process{&leader, &other} {
		s.ca = filepath.Join(t.TempDir(), "ca.pem")
		s.trust(s.authority)
		files[i] = s.ca
		at, arguments := secure(t)
		pod := []string{fmt.Sprintf("POD_NAME=weir-%d", i), "POD_NAMESPACE=weir-system", "POD_IP=127.0.0.1"}
		*replica, url = commands.StartWith(t, pod, "weir", s.server(api, arguments...)...), at
		if i == 0 { // it is ready first, and leads
			leads(t, leader, 30*time.Second)
		}
	}
	w := s.watch(other.Address(t), nobody, 0)
	w.complete(30 * time.Second)
	w.end()
	s.ca = files[0]
	s.trust(s.newAuthority())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var l lists
	var asks sync.WaitGroup
	asks.Go(func() { l.ask(ctx, url, "reader", false, 100*time.Millisecond) })
	took := leads(t, other, 2*time.Minute)
	cancel()
	asks.Wait()
	// The leader notices with its next reads. 20 s later the other replica says so, when it looks. The
	// leader acts no more for 5 s, and a candidate needs two tries, 2 to 4.4 s apart.
	if most := interval + 20*time.Second + 20*time.Second; took > most {
		t.Errorf("the other replica led after %v, want at most %v", took, most)
	}
	if len(l.failed) > 0 || l.fewest != allPods {
		t.Errorf("%d LISTs failed, and one had %d pods, want 0 and %d: %v", len(l.failed), l.fewest, allPods, l.failed)
	}
	record(t, "LeaderWithoutNodes", Result{
		Served: fmt.Sprintf("The last known: %d LISTs to the other replica had all pods, at most %s old.", l.made, seconds(l.oldest)),
		Lost:   "no number",
		Ended:  fmt.Sprintf("the other replica leads after %s", seconds(took)),
	})
}

// leads waits until the replica says that it leads, and returns how long that took.
func leads(t *testing.T, replica *commands.Process, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	commands.Eventually(t, within, func() error {
		if !leadsNow(replica) {
			return errors.New("the replica does not lead")
		}
		return nil
	})
	return time.Since(began)
}

// leadsNow reports whether the replica has said that it leads.
func leadsNow(replica *commands.Process) bool {
	return strings.Contains(replica.Output(), `"self": true`)
}
