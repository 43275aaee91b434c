package resourcemetrics

import (
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-metrics/weir/metric"
)

// namespaceField is how a field selector calls the namespace.
const namespaceField = "metadata.namespace"

// choice is which objects a LIST asks for.
type choice struct {
	namespace metric.Namespace // empty for all
	name      string           // the only one; empty for all
	labels    labels.Selector  // nil for all
	fields    fields.Selector  // nil for all
}

// choose returns what a request asks for. options may be nil.
func choose(namespace string, options *metainternalversion.ListOptions) choice {
	c := choice{namespace: metric.Namespace(namespace)}
	if options == nil {
		return c
	}
	if s := options.LabelSelector; s != nil && !s.Empty() {
		c.labels = s
	}
	if s := options.FieldSelector; s != nil && !s.Empty() {
		c.fields = s
		c.name, _ = s.RequiresExactMatch(metav1.ObjectNameField)
		if in, ok := s.RequiresExactMatch(namespaceField); ok && c.namespace == "" {
			c.namespace = metric.Namespace(in)
		}
	}
	return c
}

// everything reports whether all objects are chosen.
func (c *choice) everything() bool {
	return c.namespace == "" && c.name == "" && c.labels == nil && c.fields == nil
}

// has reports whether the object of that name and those labels is chosen.
func (c *choice) has(namespace metric.Namespace, name string, has map[string]string) bool {
	return (c.namespace == "" || c.namespace == namespace) &&
		(c.name == "" || c.name == name) &&
		(c.fields == nil || c.fields.Matches(named{namespace, name})) &&
		(c.labels == nil || c.labels.Matches(labels.Set(has)))
}

// named are the fields by which objects are selected.
type named struct {
	namespace metric.Namespace
	name      string
}

// Get is part of fields.Fields.
func (n named) Get(field string) string {
	switch field {
	case metav1.ObjectNameField:
		return n.name
	case namespaceField:
		return string(n.namespace)
	}
	return ""
}

// Has is part of fields.Fields.
func (n named) Has(field string) bool {
	return field == metav1.ObjectNameField || field == namespaceField && n.namespace != ""
}
