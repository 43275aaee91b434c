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

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-metrics/weir/sources/host/podcgroup"
)

// WriteTable writes r for people: a line a pod's cgroup, and below it why each
// that is not live is judged so. Wide adds the containers and says why of all.
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
			if !wide || c.Path == p.Path { // a stray stands for itself
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
		b.WriteString("An age with + is at least so long: only the time of a directory tells it, which moves when something in it does.\n")
	}
	for _, p := range r.Problems {
		b.WriteString("Problem: " + printable(p) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// noPodsText says that there is nothing, and where that was looked for.
func (r *Report) noPodsText() string {
	var b strings.Builder
	if len(r.Roots) == 0 {
		b.WriteString("No pod cgroups on this machine: no kubepods cgroup, of either driver, below\n")
	} else {
		fmt.Fprintf(&b, "No pod cgroups on this machine: nothing in %s, below\n", joinPrintable(r.Roots))
	}
	for _, dir := range r.Directories {
		b.WriteString("  " + printable(dir) + "\n")
	}
	for _, p := range r.Problems {
		b.WriteString("Problem: " + printable(p) + "\n")
	}
	return b.String()
}

func joinPrintable[P ~string](list []P) string {
	var names []string
	for _, p := range list {
		names = append(names, printable(string(p)))
	}
	return strings.Join(names, ", ")
}

// printable returns s with whatever a terminal might obey written out: a process calls
// itself what it likes, and so may a cgroup.
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

// summary says how many there are, of which kinds, and by whose word.
func (r *Report) summary() string {
	var parts []string
	for _, j := range Judgements() {
		if n := r.Count(j); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, j))
		}
	}
	said := "Nobody was asked which pods there are."
	if r.PodsFrom != "" {
		said = fmt.Sprintf("Judged by %s, as of %s.", printable(r.PodsFrom), r.PodsAt.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s (cgroup %s): %s. %s\n", plural(len(r.Pods), "pod cgroup"), r.Cgroups, strings.Join(parts, ", "), said)
}

// writeReasons writes why p is judged so.
func (p *PodReport) writeReasons(b *strings.Builder, wide bool) {
	var of []*ContainerReport
	for i := range p.Containers {
		// What a leftover's containers are goes without saying, as they are what it is.
		if c := &p.Containers[i]; c.Path != p.Path && (wide || c.Judgement != Live && c.Judgement != p.Judgement) {
			of = append(of, c)
		}
	}
	if p.Judgement == Live && len(of) == 0 && !wide {
		return
	}
	fmt.Fprintf(b, "\n%s %s\n", p.Judgement, printable(p.Path))
	for _, why := range p.Reasons {
		b.WriteString("  " + printable(why) + "\n")
	}
	switch {
	case p.Removable:
		b.WriteString("  it can be removed\n")
	case p.KeptBecause != "":
		b.WriteString("  it stays: " + p.KeptBecause + "\n")
	}
	for _, c := range of {
		fmt.Fprintf(b, "  %s %s\n", c.Judgement, printable(strings.TrimPrefix(string(c.Path), string(p.Path)+"/")))
		for _, why := range c.Reasons {
			b.WriteString("    " + printable(why) + "\n")
		}
	}
}

// processColumn returns how many there are, or "?" where that cannot be told.
func (d *CgroupReport) processColumn() string {
	switch {
	case !d.Hidden:
		return strconv.Itoa(d.Processes)
	case d.Processes == 0:
		return "?"
	}
	return strconv.Itoa(d.Processes) + "+"
}

// ageColumn returns how old it is, with a + where it may well be older.
func (d *CgroupReport) ageColumn(now time.Time) string {
	if d.Since.IsZero() {
		return "-"
	}
	age := duration.HumanDuration(max(0, now.Sub(d.Since)))
	if d.SinceFrom == FromDirectory {
		age += "+"
	}
	return age
}

// WritePlan writes what Clean would remove, and returns how many cgroups that is.
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

// WriteRemovals writes what Clean did.
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
		fmt.Fprintf(&b, "systemd may still know these as units: systemctl stop %s\n", strings.Join(units, " "))
	}
	_, err := io.WriteString(out, b.String())
	return err
}
