package inspect

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/weir-metrics/weir/internal/humanize"
)

// processEvidence describes the processes in c.
func (j *judging) processEvidence(c *Cgroup) []string {
	var reasons []string
	if n := c.CountProcesses(); n > 0 {
		reasons = append(reasons, processesInside(n)+c.processNames())
	}
	switch {
	case c.Unreadable:
		reasons = append(reasons, "some of its processes could not be read")
	case c.CountProcesses() == 0 && c.Populated:
		reasons = append(reasons, "the kernel counts processes inside but lists none: they may be in another PID namespace, or ending")
	case c.IsEmpty():
		reasons = append(reasons, "no process is inside")
	}
	if c.Frozen {
		reasons = append(reasons, "it is frozen: its processes neither run nor end until it is thawed")
	}
	if n := len(c.Locations); n < len(j.tree.Hierarchies) && n < j.mostHierarchies() {
		reasons = append(reasons, fmt.Sprintf("it exists in %d of %d hierarchies: %s", n, len(j.tree.Hierarchies), humanize.List(c.hierarchyNames(), 0)))
	}
	return reasons
}

// processNames lists the oldest processes of c, after a colon.
func (c *Cgroup) processNames() string {
	var names []string
	for _, p := range c.Processes[:min(shownProcesses, len(c.Processes))] {
		names = append(names, fmt.Sprintf("%d %s (%s)", p.PID, p.Command, cmp.Or(stateNames[p.State], "sleeping")))
	}
	if len(names) == 0 {
		for _, pid := range c.PIDs[:min(shownProcesses, len(c.PIDs))] {
			names = append(names, strconv.Itoa(pid))
		}
	}
	if len(names) == 0 {
		return ", in another PID namespace"
	}
	if n := c.CountProcesses() - len(names); n > 0 {
		names = append(names, humanize.Number(n)+" more")
	}
	return ": " + humanize.List(names, 0)
}

// stateNames are the names of the states of processes that do not sleep, by the letter that ps shows.
var stateNames = map[string]string{"D": "stuck in the kernel", "Z": "zombie", "T": "stopped", "t": "stopped", "R": "running"}

// processesInside returns "1 process is inside", "2 processes are inside".
func processesInside(n int) string {
	return humanize.Count(n, "process") + " " + humanize.IsAre(n) + " inside"
}
