package recording

import (
	"fmt"
	"slices"

	"github.com/weir-metrics/weir/metric"
)

// vocabulary says what the numbers of metrics, groups and reasons in a file mean
// here: their values of today, or -1 for a name that this weir does not know.
// Their names are written at each beginning, for catalogues grow.
type vocabulary struct {
	metrics []int16
	groups  []int16
	reasons []int16
}

// vocabulary writes the names in the order of their numbers, which are
// those that this weir has for them.
func (e *encoder) vocabulary() {
	e.count(metric.NumGroups)
	for g := range metric.Group(metric.NumGroups) {
		e.text(g.String())
	}
	e.count(metric.NumReasons)
	for r := range metric.Reason(metric.NumReasons) {
		e.text(r.String())
	}
	e.count(int(metric.NumMetrics))
	for i := range metric.Catalogue {
		e.text(metric.Catalogue[i].Name)
	}
}

func (d *decoder) vocabulary() {
	groups := make([]string, metric.NumGroups)
	for g := range groups {
		groups[g] = metric.Group(g).String()
	}
	d.names = vocabulary{
		groups: d.numbers(func(name string) int { return slices.Index(groups, name) }),
		reasons: d.numbers(func(name string) int {
			if r, ok := metric.ParseReason(name); ok {
				return int(r)
			}
			return -1
		}),
		metrics: d.numbers(func(name string) int {
			if id, ok := metric.ByName(name); ok {
				return int(id)
			}
			return -1
		}),
	}
	if len(d.names.groups) > maxGroups || len(d.names.metrics) > maxMetrics {
		d.fail(fmt.Errorf("%d groups and %d metrics are more than any weir has", len(d.names.groups), len(d.names.metrics)))
	}
}

// numbers reads names and returns what each is here.
func (d *decoder) numbers(here func(string) int) []int16 {
	n := d.count()
	d.spend(2 * n)
	if d.err != nil {
		return nil
	}
	numbers := make([]int16, n)
	for i := range numbers {
		numbers[i] = int16(here(d.text()))
	}
	return numbers
}

// group reads which group.
func (d *decoder) group() (metric.Group, bool) {
	at := d.unsigned()
	if at >= uint64(len(d.names.groups)) {
		d.fail(errPlace)
		return 0, false
	}
	g := d.names.groups[at]
	return metric.Group(max(g, 0)), g >= 0
}

// reason reads a reason; one that this weir does not know is Unjudged.
func (d *decoder) reason() metric.Reason {
	at := d.unsigned()
	if at >= uint64(len(d.names.reasons)) {
		d.fail(errPlace)
		return metric.Unjudged
	}
	return metric.Reason(max(d.names.reasons[at], 0))
}
