package document

import (
	"fmt"
	"reflect"
	"strings"
	"text/tabwriter"
)

// ranking writes the whole ranking for a signal. Signals of one resource have the same:
// it is written once.
func (p *writer) ranking(all []Signal, i int) {
	r := all[i].Ranking
	if r == nil || len(r.Pods) == 0 {
		return
	}
	names := []string{all[i].Name}
	for k := range all {
		same := k != i && all[k].Ranking != nil && reflect.DeepEqual(all[k].Ranking, r)
		switch {
		case same && k < i:
			return
		case same:
			names = append(names, all[k].Name)
		}
	}
	p.title("Who goes for " + strings.Join(names, ", ") + ", first to go first")
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POD\tOVER REQUEST\tPRIORITY\tUSES\tREQUESTS\tEXCESS\tBEFORE THE NEXT BY\tWHY NOT")
	for i := range r.Pods {
		pod := &r.Pods[i]
		over := "no"
		switch {
		case pod.Request == nil:
			over = "–"
		case pod.Over:
			over = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", safe(pod.String()), over, pod.Priority,
			r.Unit.or(pod.Usage), r.Unit.or(pod.Request), r.Unit.or(pod.Excess), strings.ToLower(safe(pod.Before)), or(safe(pod.Why)))
	}
	_ = w.Flush() // to memory
	for l := range strings.Lines(b.String()) {
		p.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
}

func (u Unit) or(v *float64) string {
	if v == nil {
		return "–"
	}
	return u.Words(*v)
}

func or(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
