package clustermetrics

import (
	"slices"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// filters are what a series must pass, all of them: the sink's options and the
// request's.
type filters []*series.Filter

// all reports whether every filter passes what does.
func (f filters) all(does func(*series.Filter) bool) bool {
	return !slices.ContainsFunc(f, func(o *series.Filter) bool { return !does(o) })
}

func (f filters) level(k metric.Kind) bool {
	return f.all(func(o *series.Filter) bool { return o.Level(k) })
}

// metrics returns which metrics of entities of kind k pass. part is the kind of
// part, or empty.
func (f filters) metrics(k metric.Kind, part string) (pass [metric.NumMetrics]bool) {
	for id := range pass {
		pass[id] = f.all(func(o *series.Filter) bool { return o.Metric(k, part, &metric.Catalogue[id]) })
	}
	return pass
}

// verdicts reports whether weir_verdicts passes, which is one of the metrics.
func (f filters) verdicts() bool {
	return f.all(func(o *series.Filter) bool { return o.Family(verdictsFamily) })
}

// wide reports whether entities pass whatever their names.
func (f filters) wide() bool { return f.all((*series.Filter).Wide) }

func (f filters) entity(l *series.Labels) bool {
	return f.all(func(o *series.Filter) bool { return o.Entity(l) })
}
