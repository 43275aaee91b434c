package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// WriteTable writes r for people: one line for each pod's cgroup, and then the reasons for each
// judgement other than live. wide adds the containers, the limits and all reasons.
func (r *Report) WriteTable(out io.Writer, wide bool) error {
	var b bytes.Buffer
	if len(r.Pods) == 0 {
		r.writeNoPods(&b)
	} else {
		r.writePods(&b, wide)
	}
	for _, p := range r.Problems {
		b.WriteString("Problem: " + humanize.Printable(p) + "\n")
	}
	_, err := b.WriteTo(out)
	return err
}

func (r *Report) writePods(b *bytes.Buffer, wide bool) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	limits := ""
	if wide {
		limits = "CPU SHARES\tCPU QUOTA\tMEMORY LIMIT\t"
	}
	fmt.Fprintln(w, "JUDGEMENT\tPOD\tQOS BY PATH\tQOS BY SPEC\tPROCESSES\tAGE\t"+limits+"CGROUP")
	atLeast := false
	for i := range r.Pods {
		p := &r.Pods[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s%s\n", p.Judgement, humanize.Printable(p.PodName()), cmp.Or(p.PathQoS, "-"), cmp.Or(humanize.Printable(p.SpecQoS), "-"),
			p.columns(r.Time, wide), humanize.Printable(p.Path))
		atLeast = atLeast || p.SinceFrom == FromDirectory
		for k := range p.Containers {
			c := &p.Containers[k]
			if !wide || c.Path == p.Path { // the line above shows a container outside of its pod's cgroup
				continue
			}
			fmt.Fprintf(w, "  %s\t  %s\t\t\t%s  %s\n", c.Judgement, cmp.Or(humanize.Printable(c.Name), "-"),
				c.columns(r.Time, wide), humanize.Printable(strings.TrimPrefix(string(c.Path), string(p.Path))))
			atLeast = atLeast || c.SinceFrom == FromDirectory
		}
	}
	_ = w.Flush() // a buffer returns no errors
	for i := range r.Pods {
		r.Pods[i].writeReasons(b, wide)
	}
	b.WriteString("\n" + r.summary())
	if atLeast {
		b.WriteString("An age with + is a minimum: it is taken from the modification time of the cgroup's directory.\n")
	}
}

// writeNoPods writes the text for a machine without cgroups of pods.
func (r *Report) writeNoPods(b *bytes.Buffer) {
	reason := "there is no kubepods cgroup, of the cgroupfs or the systemd driver"
	if len(r.Roots) > 0 {
		var roots []string
		for _, root := range r.Roots {
			roots = append(roots, humanize.Printable(root))
		}
		reason = "no cgroup of a pod is in " + humanize.List(roots, 0)
	}
	b.WriteString("No pod cgroups on this machine: " + reason + ". Searched:\n")
	for _, dir := range r.Directories {
		b.WriteString("  " + humanize.Printable(dir) + "\n")
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
		list = fmt.Sprintf("Compared with the pods that %s lists, as of %s.", humanize.Printable(r.PodsFrom), humanize.DateTime(*r.PodsAt))
	}
	return fmt.Sprintf("%s (cgroup %s): %s. %s\n", humanize.Count(len(r.Pods), "pod cgroup"), r.Cgroups, strings.Join(parts, ", "), list)
}

// writeReasons writes the reasons for the judgements on p and its containers.
func (p *PodCgroups) writeReasons(b *bytes.Buffer, wide bool) {
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
	fmt.Fprintf(b, "\n%s %s\n", p.Judgement, humanize.Printable(p.Path))
	for _, reason := range p.Reasons {
		b.WriteString("  " + humanize.Printable(reason) + "\n")
	}
	switch {
	case p.Removable:
		b.WriteString("  it can be removed with --clean\n")
	case p.KeptBecause != "":
		b.WriteString("  --clean keeps it: " + p.KeptBecause + "\n")
	}
	for _, c := range containers {
		fmt.Fprintf(b, "  %s %s\n", c.Judgement, humanize.Printable(strings.TrimPrefix(string(c.Path), string(p.Path)+"/")))
		for _, reason := range c.Reasons {
			b.WriteString("    " + humanize.Printable(reason) + "\n")
		}
	}
}

// columns returns the columns for the processes, the age and, if wide is set, the limits. The
// number of processes is "3", "3+" if there are more than could be read, or "?" if none could be
// read. An age has a + if the cgroup may be older.
func (r *CgroupReport) columns(now time.Time, wide bool) string {
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
	text := processes + "\t" + age + "\t"
	if wide {
		text += r.Limits.columns()
	}
	return text
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
