package simulator

import (
	"net/http"
	"time"
)

// Conduct is how a node's server behaves at a moment, apart from the content of
// its answers.
type Conduct struct {
	Delay  time.Duration // how long it waits before it answers
	Hang   bool          // it accepts connections, and never answers
	Down   bool          // it closes the connection
	Status int           // the error status that it answers; 0 for none
	// Certificate says what is wrong with its certificate: SelfSigned, WrongName or
	// Expired.
	Certificate Style
	// As is the node that answers instead of it, or nil.
	As *Node
	// Changed is when Certificate or As changed last, in nanoseconds since the Unix
	// epoch. Older connections are closed.
	Changed int64
}

// Conduct returns how the node behaves at now.
func (n *Node) Conduct(now time.Time) Conduct {
	var c Conduct
	if len(n.faults) == 0 {
		return c
	}
	t := now.UnixNano()
	if s := holds(n.faults, Slow, t); s != nil {
		c.Delay = s.Delay
	}
	c.Hang = holds(n.faults, Hang, t) != nil
	c.Down = holds(n.faults, Down, t) != nil || holds(n.faults, Reboot, t) != nil
	if r := holds(n.faults, Refuse, t); r != nil {
		c.Status = http.StatusUnauthorized
		if r.Style == Forbidden {
			c.Status = http.StatusForbidden
		}
	}
	if w := holds(n.faults, Certificate, t); w != nil {
		c.Certificate = w.Style
	}
	if i := holds(n.faults, Impostor, t); i != nil {
		c.As = n.impostor(i.As)
	}
	for i := range n.faults {
		f := &n.faults[i]
		if f.Kind != Certificate && f.Kind != Impostor {
			continue
		}
		for _, at := range [...]int64{f.from, f.until} {
			if at <= t {
				c.Changed = max(c.Changed, at)
			}
		}
	}
	return c
}

// impostor returns the first other node that matches the pattern, or nil.
func (n *Node) impostor(pattern string) *Node {
	for _, other := range n.fleet.nodes {
		if other != n && match(pattern, other.Name) {
			return other
		}
	}
	return nil
}

// Listed reports whether the API server has the node at now.
func (n *Node) Listed(now time.Time) bool { return holds(n.faults, Unlisted, now.UnixNano()) == nil }

// Failing reports whether the node reports at now that it could not collect.
// Its summary is then an error.
func (n *Node) Failing(now time.Time) bool {
	return holds(n.faults, ScrapeError, now.UnixNano()) != nil
}
