package inspect

import (
	"fmt"
	"strconv"
	"strings"
)

// within says what runs in c.
func (j *judge) within(c *Cgroup) []string {
	var why []string
	if n := c.Count(); n > 0 {
		why = append(why, are(n, "process", "inside")+c.names())
	}
	switch {
	case c.Unread:
		why = append(why, "not all of its processes could be read")
	case c.Count() == 0 && c.Held:
		why = append(why, "the kernel counts something that runs inside, and names no process: they may be of another PID namespace, or about to end")
	case c.Vacant():
		why = append(why, "no process is inside")
	}
	if c.Frozen {
		why = append(why, "it is frozen: nothing in it runs, or ends, until it is thawed")
	}
	if n := len(c.In); n < len(j.tree.Hierarchies) && n < j.widest() {
		why = append(why, fmt.Sprintf("it is left in %s only, of %d hierarchies", strings.Join(c.hierarchies(j.tree.Hierarchies), " and "), len(j.tree.Hierarchies)))
	}
	return why
}

// names lists the oldest processes of c after a colon; empty if none is known.
func (c *Cgroup) names() string {
	var names []string
	for _, p := range c.Processes[:min(shown, len(c.Processes))] {
		names = append(names, fmt.Sprintf("%d %s (%s)", p.PID, p.Command, stateName(p.State)))
	}
	if len(names) == 0 {
		for _, pid := range c.PIDs[:min(shown, len(c.PIDs))] {
			names = append(names, strconv.Itoa(pid))
		}
	}
	if len(names) == 0 {
		return ", of a PID namespace that is not seen from here"
	}
	more := ""
	if n := c.Count() - len(names); n > 0 {
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

// are returns "1 process is inside", "2 processes are inside".
func are(n int, what, where string) string { return plural(n, what) + " " + isOrAre(n) + " " + where }
