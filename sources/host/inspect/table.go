package inspect

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// WriteTable writes r for people: one line for each pod's cgroup, then the reasons for
// each judgement other than live. wide adds the containers, the limits and all reasons.
func (r *Report) WriteTable(out io.Writer, wide bool) error {
	if len(r.Pods) == 0 {
		_, err := io.WriteString(out, r.noPodsText())
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	limits := func(*CgroupReport) string { return "" }
	head := ""
	if wide {
		head = "CPU SHARES\tCPU QUOTA\tMEMORY LIMIT\t"
		limits = func(d *CgroupReport) string {
			cpu, quota, memory := d.Limits.columns()
			return cpu + "\t" + quota + "\t" + memory + "\t"
		}
	}
	fmt.Fprintln(w, "JUDGEMENT\tPOD\tQOS BY PATH\tQOS BY SPEC\tPROCESSES\tAGE\t"+head+"CGROUP")
	atLeast := false
	for i := range r.Pods {
		p := &r.Pods[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", p.Judgement, printable(p.PodName()), cmp.Or(p.PathQoS, "-"), cmp.Or(printable(p.SpecQoS), "-"),
			p.processColumn(), p.ageColumn(r.Time), limits(&p.CgroupReport), printable(p.Path))
		atLeast = atLeast || p.SinceFrom == FromDirectory
		for k := range p.Containers {
			c := &p.Containers[k]
			if !wide || c.Path == p.Path { // a container outside of its pod's cgroup: the line above shows it
				continue
			}
			fmt.Fprintf(w, "  %s\t  %s\t\t\t%s\t%s\t%s  %s\n", c.Judgement, cmp.Or(printable(c.Name), "-"), c.processColumn(), c.ageColumn(r.Time),
				limits(&c.CgroupReport), printable(strings.TrimPrefix(string(c.Path), string(p.Path))))
			atLeast = atLeast || c.SinceFrom == FromDirectory
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for i := range r.Pods {
		r.Pods[i].writeReasons(&b, wide)
	}
	b.WriteString("\n" + r.summary())
	if atLeast {
		b.WriteString("An age with + is a minimum: it is taken from the modification time of the cgroup's directory.\n")
	}
	for _, p := range r.Problems {
		b.WriteString("Problem: " + printable(p) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// noPodsText is the text for a machine without cgroups of pods.
func (r *Report) noPodsText() string {
	b := strings.Builder{}
	b.WriteString("No pod cgroups on this machine: ")
	if len(r.Roots) == 0 {
		b.WriteString("there is no kubepods cgroup, of the cgroupfs or the systemd driver. Searched:\n")
	} else {
		var roots []string
		for _, root := range r.Roots {
			roots = append(roots, printable(root))
		}
		b.WriteString("there are none in " + humanize.List(roots, 0) + ". Searched:\n")
	}
	for _, dir := range r.Directories {
		b.WriteString("  " + printable(dir) + "\n")
	}
	for _, p := range r.Problems {
		b.WriteString("Problem: " + printable(p) + "\n")
	}
	return b.String()
}

// printable returns s with control characters escaped. A process or a cgroup can have any
// name, also one with terminal commands.
func printable[S ~string](s S) string {
	text := strings.ToValidUTF8(string(s), string(unicode.ReplacementChar))
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		quoted := string(r)
		if !unicode.IsPrint(r) {
			quoted = strconv.QuoteRuneToASCII(r)
			quoted = quoted[1 : len(quoted)-1]
		}
		b.WriteString(quoted)
	}
	return b.String()
}

// summary counts the pods' cgroups by judgement and says which list of pods was used.
func (r *Report) summary() string {
	var parts []string
	for _, j := range Judgements() {
		if n := r.Count(j); n > 0 {
			parts = append(parts, humanize.Number(n)+" "+string(j))
		}
	}
	list := "They were not compared with a list of pods: give --pods, --kubeconfig or --in-cluster."
	if r.PodsFrom != "" {
		list = fmt.Sprintf("Compared with the pods that %s lists, as of %s.", printable(r.PodsFrom), humanize.DateTime(*r.PodsAt))
	}
	return fmt.Sprintf("%s (cgroup %s): %s. %s\n", humanize.Count(len(r.Pods), "pod cgroup"), r.Cgroups, strings.Join(parts, ", "), list)
}

// writeReasons writes the reasons for the judgements on p and its containers.
func (p *PodReport) writeReasons(b *strings.Builder, wide bool) {
	var containers []*ContainerReport
	for i := range p.Containers {
		// Only with wide: containers that are live or judged like their pod.
		if c := &p.Containers[i]; c.Path != p.Path && (wide || c.Judgement != Live && c.Judgement != p.Judgement) {
			containers = append(containers, c)
		}
	}
	if p.Judgement == Live && len(containers) == 0 && !wide {
		return
	}
	fmt.Fprintf(b, "\n%s %s\n", p.Judgement, printable(p.Path))
	for _, reason := range p.Reasons {
		b.WriteString("  " + printable(reason) + "\n")
	}
	switch {
	case p.Removable:
		b.WriteString("  it can be removed with --clean\n")
	case p.KeptBecause != "":
		b.WriteString("  --clean keeps it: " + p.KeptBecause + "\n")
	}
	for _, c := range containers {
		fmt.Fprintf(b, "  %s %s\n", c.Judgement, printable(strings.TrimPrefix(string(c.Path), string(p.Path)+"/")))
		for _, reason := range c.Reasons {
			b.WriteString("    " + printable(reason) + "\n")
		}
	}
}

// processColumn returns the number of processes: "3", "3+" if there are more than could
// be read, "?" if none could.
func (d *CgroupReport) processColumn() string {
	switch {
	case !d.Hidden:
		return strconv.Itoa(d.Processes)
	case d.Processes == 0:
		return "?"
	}
	return strconv.Itoa(d.Processes) + "+"
}

// ageColumn returns the age, with a + if it may be older.
func (d *CgroupReport) ageColumn(now time.Time) string {
	if d.Since.IsZero() {
		return "-"
	}
	age := humanize.Duration(max(0, now.Sub(d.Since)).Truncate(time.Second))
	if d.SinceFrom == FromDirectory {
		age += "+"
	}
	return age
}

// WritePlan writes which cgroups Clean would remove, and returns their number.
func (r *Report) WritePlan(out io.Writer) (n int, err error) {
	for i := range r.Pods {
		if p := &r.Pods[i]; p.Removable {
			n++
			if _, err := fmt.Fprintf(out, "would remove %s in %s\n", printable(p.Path), strings.Join(p.Hierarchies, " ")); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// WriteRemovals writes which cgroups Clean removed, and which it could not.
func (r *Report) WriteRemovals(out io.Writer) error {
	var b strings.Builder
	var units []string
	for i := range r.Removals {
		done := &r.Removals[i]
		if len(done.Removed) > 0 {
			fmt.Fprintf(&b, "removed %s in %s\n", printable(done.Path), strings.Join(done.Removed, " "))
		}
		if done.Failed != "" {
			fmt.Fprintf(&b, "not removed %s: %s\n", printable(done.Path), printable(done.Failed))
		} else if podcgroup.Parse(done.Path).Driver == podcgroup.Systemd {
			units = append(units, printable(path.Base(string(done.Path))))
		}
	}
	if len(units) > 0 {
		fmt.Fprintf(&b, "systemd may still have units for them. To stop these: systemctl stop %s\n", strings.Join(units, " "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
