package remotewrite

import (
	"cmp"
	"slices"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// maxLabels is the largest number of labels of a series, including its name.
const maxLabels = 32

// labels are the labels of an entity, sorted.
type labels struct {
	pairs  []series.Label
	before int // number of labels before __name__

	request uint32 // for which refs is valid
	refs    []byte // the encoded references of the labels; the one of the metric's name belongs at nameAt
	nameAt  int
}

// encode sets the references of the labels in the request that is being filled.
func (l *labels) encode(r *request) {
	l.request, l.refs = r.number, l.refs[:0]
	pair := func(pair series.Label) {
		l.refs = protowire.AppendVarint(l.refs, uint64(r.ref(pair.Name)))
		l.refs = protowire.AppendVarint(l.refs, uint64(r.ref(pair.Value)))
	}
	for _, p := range l.pairs[:l.before] {
		pair(p)
	}
	l.refs = protowire.AppendVarint(l.refs, uint64(r.ref("__name__")))
	l.nameAt = len(l.refs)
	for _, p := range l.pairs[l.before:] {
		pair(p)
	}
}

// Describe returns the labels of an entity, which never change.
func (r *request) Describe(l labels, s *metric.Sample) (_ labels, renamed bool) {
	if l.pairs != nil {
		return l, false
	}
	own, _ := series.LabelsOf(&s.Entity)
	l.pairs = []series.Label{}
	for _, pair := range own.All() {
		if pair.Value != "" { // an empty label is the same as no label
			l.pairs = append(l.pairs, pair)
		}
	}
	for name, value := range r.external {
		if own.Get(name) == "" && value != "" && len(l.pairs) < maxLabels-1 {
			l.pairs = append(l.pairs, series.Label{Name: name, Value: value})
		}
	}
	slices.SortFunc(l.pairs, func(a, b series.Label) int { return cmp.Compare(a.Name, b.Name) })
	l.before = sort.Search(len(l.pairs), func(i int) bool { return l.pairs[i].Name > "__name__" })
	return l, false
}
