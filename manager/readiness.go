package manager

import (
	"fmt"
	"time"
)

// enough is the share of the reachable sources that must have been read twice,
// which is what a rate needs, before weir's answers are worth asking for.
const enough = 0.95

// Ready returns nil when the answers built from the sources are worth asking
// for: 95% of the sources that can be reached have been read twice. Where that
// does not come about, it is ready nevertheless two intervals and a timeout
// after Run began: better most numbers than none. Once ready, it remains so.
// The error says what is waited for.
func (m *Manager) Ready() error {
	if m.ready.Load() {
		return nil
	}
	began := m.began.Load()
	if began == nil {
		return fmt.Errorf("the manager does not run yet")
	}
	if facts := m.options.Facts(); facts != nil && !facts.Synced {
		return fmt.Errorf("waiting for the API server's list of nodes and pods")
	}
	if err := readiness(m.Status(), time.Since(*began)); err != nil {
		return err
	}
	m.ready.Store(true)
	return nil
}

// readiness judges sources so long after the start.
func readiness(sources []SourceStatus, up time.Duration) error {
	patience := 2*defaultInterval + defaultTimeout
	if len(sources) > 0 {
		var interval, timeout time.Duration
		for _, s := range sources {
			interval, timeout = max(interval, s.Interval), max(timeout, s.Timeout)
		}
		patience = 2*interval + timeout
	}
	if up >= patience {
		return nil
	}

	var reachable, twice, failing int
	var example SourceStatus
	for _, s := range sources {
		if s.Err != nil {
			if failing == 0 {
				example = s
			}
			failing++
			continue
		}
		reachable++
		if s.Successes >= 2 {
			twice++
		}
	}
	left := (patience - up).Round(time.Second)
	switch {
	case len(sources) == 0:
		return fmt.Errorf("waiting for a source: there is none yet (ready without one in %v)", left)
	case reachable == 0:
		return fmt.Errorf("waiting for a source that answers: all %d fail, %s with: %w (ready without them in %v)",
			failing, example.Name, example.Err, left)
	case float64(twice) < enough*float64(reachable):
		var fail string
		if failing > 0 {
			fail = fmt.Sprintf(", %d more fail", failing)
		}
		return fmt.Errorf("waiting for second reads: %d of %d reachable sources have been read twice%s (ready without them in %v)",
			twice, reachable, fail, left)
	}
	return nil
}
