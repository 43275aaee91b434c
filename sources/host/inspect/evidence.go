package inspect

import (
	"fmt"
	"strconv"
	"strings"
)

// processEvidence says what runs in c.
func (j *judging) processEvidence(c *Cgroup) []string {
	var why []string
	if n := c.CountProcesses(); n > 0 {
		why = append(why, countAndVerb(n, "process", "inside")+c.processNames())
	}
	switch {
	case c.Unreadable:
		why = append(why, "not all of its processes could be read")
	case c.CountProcesses() == 0 && c.Populated:
		why = append(why, "the kernel counts something that runs inside, and names no process: they may be of another PID namespace, or about to end")
	case c.IsEmpty():
		why = append(why, "no process is inside")
	}
	if c.Frozen {
		why = append(why, "it is frozen: nothing in it runs, or ends, until it is thawed")
	}
	if n := len(c.Locations); n < len(j.tree.Hierarchies) && n < j.mostHierarchies() {
		why = append(why, fmt.Sprintf("it is left in %s only, of %d hierarchies", strings.Join(c.hierarchyNames(j.tree.Hierarchies), " and "), len(j.tree.Hierarchies)))
	}
	return why
}

// processNames lists the oldest processes of c after a colon; empty if none is known.
func (c *Cgroup) processNames() string {
	var names []string
	for _, p := range c.Processes[:min(shownProcesses, len(c.Processes))] {
		names = append(names, fmt.Sprintf("%d %s (%s)", p.PID, p.Command, stateName(p.State)))
	}
	if len(names) == 0 {
		for _, pid := range c.PIDs[:min(shownProcesses, len(c.PIDs))] {
			names = append(names, strconv.Itoa(pid))
		}
	}
	if len(names) == 0 {
		return ", of a PID namespace that is not seen from here"
	}
	more := ""
	if n := c.CountProcesses() - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return ": " + strings.Join(names, ", ") + more
}

func stateName(s string) string {
	switch s {
	case "D":
		return "stuck in the kernel"
	case "Z":
		return "dead, not reaped"
	case "T", "t":
		return "stopped"
	case "R":
		return "running"
	}
	return "sleeping"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// countAndVerb returns "1 process is inside", "2 processes are inside".
func countAndVerb(n int, what, where string) string {
	return plural(n, what) + " " + isOrAre(n) + " " + where
}
