package custommetrics

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/metric"
)

// containerLabel selects containers of a pod.
const containerLabel = "container"

// partSelector is a metric selector: it shows which parts of an object a value is for. Its zero
// value selects the object itself.
type partSelector struct {
	selector   labels.Selector
	labels     *metav1.LabelSelector // the selector in the answer
	containers bool                  // it selects containers
	kinds      []string              // kinds of the selected parts: "interface", ...
	// named holds the entity names of the only parts that can match. If it is nil, all parts must
	// be checked.
	named []string

	// found holds the readings of the selected parts by entity, without the node for pods and
	// containers. It is nil before the scan.
	found map[metric.Entity][]reading
}

// partLabels returns the labels that parts with the metric have.
func partLabels(d *metric.Descriptor) []string {
	switch {
	case d.Parts == "":
		return nil
	case d.Group == metric.Filesystem:
		return []string{"device", "volume"}
	default:
		return []string{d.Parts}
	}
}

// listsValues are the operators that list the values of a label.
var listsValues = []selection.Operator{selection.Equals, selection.DoubleEquals, selection.In}

// unknownLabel returns the error for a label that parts with the metric do not have.
func unknownLabel(name, label string, known []string) error {
	if len(known) == 0 {
		return metricsgroup.BadRequest("%s has no label %s: leave the metric selector out", name, label)
	}
	return metricsgroup.BadRequest("%s has no label %s: a metric selector can choose by %s", name, label, strings.Join(known, ", "))
}

// selectParts sets the parts that a metric selector chooses.
func (m *metricRequest) selectParts(selector labels.Selector) error {
	if selector == nil || selector.Empty() {
		return nil
	}
	d := m.descriptor
	var known []string
	if m.kind != metric.Namespaced && m.rule == nil { // a sum has no parts, and a history only some
		known = partLabels(d)
	}
	if m.kind == metric.Pod && d.Kinds.Has(metric.Container) {
		known = append(known, containerLabel)
	}
	c := partSelector{selector: selector}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if !slices.Contains(known, r.Key()) {
			return unknownLabel(m.name(), r.Key(), known)
		}
		if r.Operator() == selection.DoesNotExist {
			continue // the object itself does not have the label
		}
		if r.Key() == containerLabel {
			c.containers = true
		} else if !slices.Contains(c.kinds, r.Key()) {
			c.kinds = append(c.kinds, r.Key())
		}
		if r.Key() != containerLabel && c.named == nil && slices.Contains(listsValues, r.Operator()) {
			for _, value := range r.ValuesUnsorted() {
				c.named = append(c.named, partNames(r.Key(), value)...)
			}
			slices.Sort(c.named)
		}
	}
	var err error
	c.labels, err = metricsgroup.LabelSelector(selector)
	m.parts = c
	return err
}

// whole reports whether c selects the object itself.
func (p *partSelector) whole() bool { return !p.containers && len(p.kinds) == 0 }

// readings returns the readings of the selected parts of e.
func (p *partSelector) readings(q *metricRequest, e metric.Entity) (all []reading) {
	read := func(part metric.Entity) {
		if p.selector.Matches(entityLabels(part)) {
			if r, ok := q.readEntity(part); ok {
				all = append(all, r)
			}
		}
	}
	for _, whole := range p.owners(q, e) {
		switch {
		case len(p.kinds) == 0:
			read(whole)
		case p.named != nil:
			for _, name := range p.named {
				whole.Part = name
				read(whole)
			}
		default:
			if p.found == nil {
				p.scanParts(q, e.Namespace)
			}
			all = append(all, p.found[whole]...)
		}
	}
	return all
}

// owners returns the entities that can have the parts: e itself, or its containers.
func (p *partSelector) owners(q *metricRequest, e metric.Entity) []metric.Entity {
	if !p.containers {
		return []metric.Entity{e}
	}
	pod := q.facts.Pod(e.PodRef())
	if pod == nil {
		return nil
	}
	all := make([]metric.Entity, 0, len(pod.Containers))
	for i := range pod.Containers {
		container := e
		container.Kind, container.Name = metric.Container, pod.Containers[i].Name
		all = append(all, container)
	}
	return all
}

// scanParts reads all parts of a namespace once for each request.
func (p *partSelector) scanParts(q *metricRequest, namespace metric.Namespace) {
	p.found = map[metric.Entity][]reading{}
	kind := q.kind
	if p.containers {
		kind = metric.Container
	}
	q.view.Each(kind, func(s *metric.Sample) bool {
		if s.Entity.Part == "" || !q.allNamespaces && s.Entity.Namespace != namespace {
			return true
		}
		r, ok := readSample(s, q.descriptor)
		if !ok || !p.selector.Matches(entityLabels(s.Entity)) {
			return true
		}
		whole := s.Entity.Whole()
		if kind != metric.Node {
			whole.Node = ""
		}
		p.found[whole] = append(p.found[whole], r)
		return true
	})
}

// entityLabels returns the labels of an entity.
func entityLabels(e metric.Entity) labels.Set {
	l := labels.Set{}
	if e.Kind == metric.Container {
		l[containerLabel] = e.Name
	}
	if kind, name, ok := strings.Cut(e.Part, ":"); ok {
		l[kind] = labelValue(name)
	}
	return l
}

// partNames returns the possible entity names of the part with a label value: device names have
// slashes, which label values cannot hold.
func partNames(kind, value string) []string {
	names := []string{kind + ":" + value}
	if kind != "device" {
		return names
	}
	for _, folder := range [...]string{"/dev/", "/dev/mapper/"} {
		if name, ok := strings.CutPrefix(value, labelValue(folder)+"-"); ok {
			names = append(names, kind+":"+folder+name)
		}
	}
	return names
}

// labelValue replaces characters that a label value cannot contain by dashes, and trims dashes:
// "dev-vda1" for "/dev/vda1".
func labelValue(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
	return strings.Trim(name, "-_.")
}

// partsOf returns the label values of the parts of e that have the metric.
func (m *metricRequest) partsOf(e metric.Entity) (names []string) {
	m.view.Each(e.Kind, func(s *metric.Sample) bool {
		whole := s.Entity.Whole()
		if e.Kind != metric.Node {
			whole.Node = ""
		}
		if s.Entity.Part == "" || whole != e {
			return true
		}
		if _, ok := readSample(s, m.descriptor); ok {
			kind, name, _ := strings.Cut(s.Entity.Part, ":")
			names = append(names, kind+"="+labelValue(name))
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}
