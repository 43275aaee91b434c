package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// WriteTable writes r for people: one line for each pod's cgroup, and then the reasons for each
// judgement other than live. wide adds the containers, the limits and all reasons.
func (r *Report) WriteTable(out io.Writer, wide bool) error {
	var p humanize.Page
	if len(r.Pods) == 0 {
		r.writeNoPods(&p)
	} else {
		r.writePods(&p, wide)
	}
	for _, problem := range r.Problems {
		p.Line(0, humanize.Plain, "Problem: "+problem)
	}
	return p.Print(out)
}

func (r *Report) writePods(page *humanize.Page, wide bool) {
	head := []string{"JUDGEMENT", "POD", "QOS BY PATH", "QOS BY SPEC", "PROCESSES", "AGE"}
	if wide {
		head = append(head, "CPU SHARES", "CPU QUOTA", "MEMORY LIMIT")
	}
	rows := [][]string{append(head, "CGROUP")}
	atLeast := false
	add := func(c *CgroupReport, path string, cells ...string) {
		rows = append(rows, append(append(cells, c.columns(r.Time, wide)...), path))
		atLeast = atLeast || c.SinceFrom == FromDirectory
	}
	for i := range r.Pods {
		p := &r.Pods[i]
		add(&p.CgroupReport, string(p.Path), string(p.Judgement), p.PodName(), cmp.Or(string(p.PathQoS), "-"), cmp.Or(string(p.SpecQoS), "-"))
		for k := range p.Containers {
			c := &p.Containers[k]
			if !wide || c.Path == p.Path { // the line above shows a container outside of its pod's cgroup
				continue
			}
			add(&c.CgroupReport, "  "+strings.TrimPrefix(string(c.Path), string(p.Path)), "  "+string(c.Judgement), "  "+cmp.Or(c.Name, "-"), "", "")
		}
	}
	page.Table(rows)
	for i := range r.Pods {
		r.Pods[i].writeReasons(page, wide)
	}
	page.Gap()
	page.Line(0, humanize.Plain, r.summary())
	if atLeast {
		page.Line(0, humanize.Plain, "An age with + is a minimum: it is taken from the modification time of the cgroup's directory.")
	}
}

// writeNoPods writes the text for a machine without cgroups of pods.
func (r *Report) writeNoPods(page *humanize.Page) {
	reason := "there is no kubepods cgroup, of the cgroupfs or the systemd driver"
	if len(r.Roots) > 0 {
		var roots []string
		for _, root := range r.Roots {
			roots = append(roots, string(root))
		}
		reason = "no cgroup of a pod is in " + humanize.List(roots, 0)
	}
	page.Line(0, humanize.Plain, "No pod cgroups on this machine: "+reason+". Searched:")
	for _, dir := range r.Directories {
		page.Line(2, humanize.Plain, dir)
	}
}

// summary counts the pods' cgroups by judgement and names the list of pods that was used.
func (r *Report) summary() string {
	var parts []string
	for _, j := range Judgements() {
		if n := r.Count(j); n > 0 {
			parts = append(parts, humanize.Number(n)+" "+string(j))
		}
	}
	list := "They were not compared with a list of pods: give --pods, --kubeconfig or --in-cluster."
	if r.PodsFrom != "" {
		list = fmt.Sprintf("Compared with the pods that %s lists, as of %s.", r.PodsFrom, humanize.DateTime(*r.PodsAt))
	}
	return fmt.Sprintf("%s (cgroup %s): %s. %s", humanize.Count(len(r.Pods), "pod cgroup"), r.Cgroups, strings.Join(parts, ", "), list)
}

// writeReasons writes the reasons for the judgements on p and its containers.
func (p *PodCgroups) writeReasons(page *humanize.Page, wide bool) {
	var containers []*ContainerReport
	for i := range p.Containers {
		// Containers that are live, or judged like their pod, are shown only with wide.
		if c := &p.Containers[i]; c.Path != p.Path && (wide || c.Judgement != Live && c.Judgement != p.Judgement) {
			containers = append(containers, c)
		}
	}
	if p.Judgement == Live && len(containers) == 0 && !wide {
		return
	}
	page.Gap()
	page.Line(0, humanize.Plain, fmt.Sprintf("%s %s", p.Judgement, p.Path))
	for _, reason := range p.Reasons {
		page.Line(2, humanize.Plain, reason)
	}
	switch {
	case p.Removable:
		page.Line(2, humanize.Plain, "it can be removed with --clean")
	case p.KeptBecause != "":
		page.Line(2, humanize.Plain, "--clean keeps it: "+p.KeptBecause)
	}
	for _, c := range containers {
		page.Line(2, humanize.Plain, fmt.Sprintf("%s %s", c.Judgement, strings.TrimPrefix(string(c.Path), string(p.Path)+"/")))
		for _, reason := range c.Reasons {
			page.Line(4, humanize.Plain, reason)
		}
	}
}

// columns returns the cells for the processes, the age and, if wide is set, the limits. The
// number of processes is "3", "3+" if there are more than could be read, or "?" if none could be
// read. An age has a + if the cgroup may be older.
func (r *CgroupReport) columns(now time.Time, wide bool) []string {
	processes := strconv.Itoa(r.Processes)
	switch {
	case r.Hidden && r.Processes == 0:
		processes = "?"
	case r.Hidden:
		processes += "+"
	}
	age := "-"
	if !r.Since.IsZero() {
		age = humanize.Duration(max(0, now.Sub(r.Since)).Truncate(time.Second))
		if r.SinceFrom == FromDirectory {
			age += "+"
		}
	}
	cells := []string{processes, age}
	if wide {
		cells = append(cells, r.Limits.columns()...)
	}
	return cells
}

// WritePlan writes which cgroups Clean would remove, and returns their number.
func (r *Report) WritePlan(out io.Writer) (n int, err error) {
	for i := range r.Pods {
		if p := &r.Pods[i]; p.Removable {
			n++
			if _, err := fmt.Fprintf(out, "would remove %s in %s\n", humanize.Printable(p.Path), strings.Join(p.Hierarchies, " ")); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// WriteRemovals writes which cgroups Clean removed, and which it could not.
func (r *Report) WriteRemovals(out io.Writer) error {
	var b bytes.Buffer
	var units []string
	for i := range r.Removals {
		done := &r.Removals[i]
		if len(done.Removed) > 0 {
			fmt.Fprintf(&b, "removed %s in %s\n", humanize.Printable(done.Path), strings.Join(done.Removed, " "))
		}
		if done.Failed != "" {
			fmt.Fprintf(&b, "not removed %s: %s\n", humanize.Printable(done.Path), humanize.Printable(done.Failed))
		} else if podcgroup.Parse(done.Path).Driver == podcgroup.Systemd {
			units = append(units, humanize.Printable(path.Base(string(done.Path))))
		}
	}
	if len(units) > 0 {
		fmt.Fprintf(&b, "systemd may still have units for them. To stop these: systemctl stop %s\n", strings.Join(units, " "))
	}
	_, err := b.WriteTo(out)
	return err
}
