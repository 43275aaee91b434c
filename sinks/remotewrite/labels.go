package remotewrite

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// maxLabels is the largest number of labels of a series, including its name.
const maxLabels = 32

// layout has the names of the labels of a kind of entity, or of a kind of its parts, sorted, and those of its metrics.
type layout struct {
	labels  []label
	metrics [metric.NumMetrics]names
}

// label is a label of all entities of a layout. Its value is that of an entity, or else the external one.
type label struct {
	name     symbol
	own      int // index of the value in series.Labels; -1 for an external label
	external symbol
	isName   bool // __name__, whose value is the name of a metric
}

// value returns the reference of the value in the request; 0, that of the empty text, if there is none.
func (l *label) value(r *request, own []series.Label) uint32 {
	if l.own >= 0 && own[l.own].Value != "" {
		return r.ref(own[l.own].Value)
	}
	return r.refOf(&l.external)
}

// newLayout returns the layout of an entity with some own labels.
func newLayout(k metric.Kind, part string, own []series.Label, external map[string]string) *layout {
	l := &layout{labels: []label{{name: symbol{text: "__name__"}, own: -1, isName: true}}}
	for id := range l.metrics {
		d := &metric.Catalogue[id]
		l.metrics[id].name.text, l.metrics[id].help.text = series.Name(k, part, d), series.Help(k, part, d)
	}
	for i, pair := range own {
		l.labels = append(l.labels, label{name: symbol{text: pair.Name}, own: i, external: symbol{text: external[pair.Name]}})
	}
	for name, value := range external {
		isOwn := slices.ContainsFunc(own, func(pair series.Label) bool { return pair.Name == name })
		if !isOwn && value != "" && len(l.labels) < maxLabels {
			l.labels = append(l.labels, label{name: symbol{text: name}, own: -1, external: symbol{text: value}})
		}
	}
	slices.SortFunc(l.labels, func(a, b label) int { return cmp.Compare(a.name.text, b.name.text) })
	return l
}

// begin begins the points of an entity: it sets the references of its labels.
func (r *request) begin(e *metric.Entity) {
	labels, part := series.LabelsOf(e)
	own := labels.All()
	l := r.layouts[e.Kind][part]
	if l == nil {
		l = newLayout(e.Kind, part, own, r.external)
		r.layouts[e.Kind][part] = l
	}
	r.entity, r.layout, r.labelRefs = e, l, r.labelRefs[:0]
	for i := range l.labels {
		label := &l.labels[i]
		if label.isName {
			r.labelRefs = protowire.AppendVarint(r.labelRefs, uint64(r.refOf(&label.name)))
			r.nameAt = len(r.labelRefs)
		} else if value := label.value(r, own); value != 0 { // an empty label is the same as no label
			r.labelRefs = protowire.AppendVarint(r.labelRefs, uint64(r.refOf(&label.name)))
			r.labelRefs = protowire.AppendVarint(r.labelRefs, uint64(value))
		}
	}
}
