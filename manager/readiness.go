package manager

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
)

// enough is the share of the reachable nodes that must have rates before weir is ready.
const enough = 0.95

// Ready returns nil when 95% of the reachable nodes have rates, or two intervals and a timeout
// after all sources were known: most numbers are better than none. Once ready, the manager
// stays ready. The error says what weir waits for. It names no address and no node, because
// everybody may read it.
//
// A node is reachable if the last read of any of its sources succeeded at least in part, or if
// none of them was read yet, even if the API server calls it NotReady. Nodes that are excluded
// on purpose do not count.
func (m *Manager) Ready() error {
	if m.ready.Load() {
		return nil
	}
	if m.began.Load() == nil {
		return errors.New("waiting for the manager to start")
	}
	complete := m.complete.Load()
	if complete == nil {
		return errors.New("waiting for the API server's list of nodes and pods")
	}
	if err := readiness(m.Status(), time.Since(*complete)); err != nil {
		return err
	}
	m.ready.Store(true)
	return nil
}

// Collecting returns an error if weir no longer reads: every source is due for longer than four rounds
// may take. Nodes that do not answer do not matter, because a round ends at its timeout. A process in
// this state does not recover by itself, so it should be started again. Everybody may read the error.
func (m *Manager) Collecting() error { return collecting(m.Status(), time.Now()) }

func collecting(sources []SourceStatus, now time.Time) error {
	var last time.Time // the newest time at which a source was due
	for _, s := range sources {
		if s.Unread != nil {
			continue
		}
		if now.Sub(s.Due) <= 4*(s.Interval+s.Timeout) {
			return nil
		}
		if s.Due.After(last) {
			last = s.Due
		}
	}
	if last.IsZero() {
		return nil // there is nothing to read
	}
	return fmt.Errorf("no source has been read for %v, although all were due", now.Sub(last).Round(time.Second))
}

// known reports whether facts are complete, and therefore the sources that depend on them.
func (m *Manager) known(facts *cluster.Facts) bool {
	if m.options.FactsChanged == nil && facts == nil {
		return true // no cluster
	}
	return facts != nil && facts.Synced
}

// nodeReads is the result of all sources of one node.
type nodeReads struct{ reached, rated bool }

// readiness is Ready for these sources. up is the time since all of them were known.
func readiness(sources []SourceStatus, up time.Duration) error {
	nodes := map[string]nodeReads{}
	var interval, timeout time.Duration
	var failed error
	for _, s := range sources {
		if s.Unread != nil {
			continue
		}
		interval, timeout = max(interval, s.Interval), max(timeout, s.Timeout)
		reached := s.Reached || s.Rounds == 0
		if !reached && failed == nil {
			failed = s.Err
		}
		name := cmp.Or(string(s.Node), s.Name)
		n := nodes[name]
		nodes[name] = nodeReads{n.reached || reached, n.rated || reached && s.Rated}
	}
	patience := 2*cmp.Or(interval, defaultInterval) + cmp.Or(timeout, defaultTimeout)
	if up >= patience {
		return nil
	}
	return waitsFor(nodes, failed, humanize.Duration((patience - up).Round(time.Second)))
}

// waitsFor is what Ready waits for, for at most left: a node, one that answers, or rates of
// enough nodes; nil if they are there. failed is the error of a node that does not answer.
func waitsFor(nodes map[string]nodeReads, failed error, left string) error {
	var reachable, rated int
	for _, n := range nodes {
		if n.reached {
			reachable++
		}
		if n.rated {
			rated++
		}
	}
	switch {
	case len(nodes) == 0:
		return fmt.Errorf("waiting for a node: there is none to read (ready without one in %v)", left)
	case reachable == 0:
		return fmt.Errorf("waiting for a node that answers: all %d fail, one of them with %s, see the log (ready without them in %v)",
			len(nodes), reasonOf(failed), left)
	case float64(rated) < enough*float64(reachable):
		var fail string
		if n := len(nodes) - reachable; n > 0 {
			fail = fmt.Sprintf(", %d more fail", n)
		}
		return fmt.Errorf("waiting for rates: %d of %d reachable nodes have them%s (ready without them in %v)",
			rated, reachable, fail, left)
	}
	return nil
}
