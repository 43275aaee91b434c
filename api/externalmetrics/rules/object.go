package rules

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Object is the kind of Kubernetes objects that the values of a rule are of.
type Object struct {
	// Resource is the resource in paths of the API, in its plural.
	Resource schema.GroupResource
	// Kind and Version are for answers. The version of an unknown resource is empty.
	Kind, Version string
	// Label is the label of the result that has an object's name.
	Label string
	// Namespaced reports whether the objects are in namespaces.
	Namespaced bool
}

// IsNamespace reports whether the objects are namespaces.
func (o *Object) IsNamespace() bool {
	return o.Resource == schema.GroupResource{Resource: "namespaces"}
}

// knownObjects are the kinds of objects that a rule may name by a word. The word is also the label.
var knownObjects = map[string]Object{
	"pod":                   builtIn("", "pods", "Pod", true),
	"namespace":             builtIn("", "namespaces", "Namespace", false),
	"node":                  builtIn("", "nodes", "Node", false),
	"service":               builtIn("", "services", "Service", true),
	"persistentvolumeclaim": builtIn("", "persistentvolumeclaims", "PersistentVolumeClaim", true),
	"persistentvolume":      builtIn("", "persistentvolumes", "PersistentVolume", false),
	"deployment":            builtIn("apps", "deployments", "Deployment", true),
	"statefulset":           builtIn("apps", "statefulsets", "StatefulSet", true),
	"daemonset":             builtIn("apps", "daemonsets", "DaemonSet", true),
	"replicaset":            builtIn("apps", "replicasets", "ReplicaSet", true),
	"job":                   builtIn("batch", "jobs", "Job", true),
	"cronjob":               builtIn("batch", "cronjobs", "CronJob", true),
	"ingress":               builtIn("networking.k8s.io", "ingresses", "Ingress", true),
	"networkpolicy":         builtIn("networking.k8s.io", "networkpolicies", "NetworkPolicy", true),

	"configmap":               builtIn("", "configmaps", "ConfigMap", true),
	"secret":                  builtIn("", "secrets", "Secret", true),
	"serviceaccount":          builtIn("", "serviceaccounts", "ServiceAccount", true),
	"resourcequota":           builtIn("", "resourcequotas", "ResourceQuota", true),
	"replicationcontroller":   builtIn("", "replicationcontrollers", "ReplicationController", true),
	"poddisruptionbudget":     builtIn("policy", "poddisruptionbudgets", "PodDisruptionBudget", true),
	"horizontalpodautoscaler": builtIn("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true),
}

func builtIn(group, resource, kind string, namespaced bool) Object {
	return Object{Resource: schema.GroupResource{Group: group, Resource: resource}, Kind: kind, Version: "v1", Label: strings.ToLower(kind), Namespaced: namespaced}
}

// KnownObject returns the kind of objects with a resource, by names as IsCalled takes them.
func KnownObject(group, resource string) (Object, bool) {
	for word, o := range knownObjects {
		if IsCalled(o.Resource, word, group, resource) {
			return o, true
		}
	}
	return Object{}, false
}

// IsCalled reports whether a group and a resource, in its singular or plural, are the names of a known
// resource. An empty group is any group, and the first name of a group stands for it.
func IsCalled(known schema.GroupResource, singular, group, resource string) bool {
	return (resource == singular || resource == known.Resource) && (group == "" || strings.HasPrefix(known.Group+".", group+"."))
}

// pathSegment matches the names of resources and of API groups.
var pathSegment = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// object reads the key for. It returns an object without a label if there is a mistake.
func (p *fileParser) object(n *yaml.Node) *Object {
	if n.Kind == yaml.ScalarNode {
		o, ok := knownObjects[n.Value]
		if !ok {
			words := slices.Sorted(maps.Keys(knownObjects))
			m := p.addMistake(n, "for is %q: it is %s, or a mapping with resource, group and label", n.Value, humanize.Or(words))
			m.Wrong, m.Known = n.Value, words
		}
		return &o
	}
	var o Object
	before := len(p.mistakes)
	p.mapping(n, "for", fields{
		"resource": {required: true, read: p.text(&o.Resource.Resource, "resource")},
		"group":    {read: p.text(&o.Resource.Group, "group")},
		"label":    {required: true, read: p.text(&o.Label, "label")},
		"kind":     {read: p.text(&o.Kind, "kind")},
	})
	if len(p.mistakes) > before {
		return &Object{}
	}
	switch {
	case !pathSegment.MatchString(o.Resource.Resource):
		p.addMistake(n, "resource %q is not one of the API: write it as in kubectl api-resources, such as ingresses", o.Resource.Resource)
	case o.Resource.Group != "" && !pathSegment.MatchString(o.Resource.Group):
		p.addMistake(n, "group %q is not an API group: write it as in kubectl api-resources, such as networking.k8s.io", o.Resource.Group)
	case o.Label == model.MetricNameLabel || !model.UTF8Validation.IsValidLabelName(o.Label):
		p.addMistake(n, "label %q is not the name of a label that holds an object's name", o.Label)
	default:
		o.Namespaced = true
		if k, ok := KnownObject(o.Resource.Group, o.Resource.Resource); ok {
			o.Resource, o.Version, o.Namespaced = k.Resource, k.Version, k.Namespaced
			o.Kind = k.Kind
		} else if o.Kind == "" {
			singular := SingularOf(o.Resource.Resource)
			o.Kind = strings.ToUpper(singular[:1]) + singular[1:]
		}
		return &o
	}
	return &Object{}
}

// pluralEndings are the endings of plurals and of their singulars. The first that fits counts.
var pluralEndings = [][2]string{{"ies", "y"}, {"sses", "ss"}, {"xes", "x"}, {"ches", "ch"}, {"shes", "sh"}, {"s", ""}}

// SingularOf returns the usual singular of a resource.
func SingularOf(plural string) string {
	for _, ending := range pluralEndings {
		if stem, ok := strings.CutSuffix(plural, ending[0]); ok && stem != "" {
			return stem + ending[1]
		}
	}
	return plural
}

// scope returns whether a rule's query is narrowed to a namespace. namespaced is the key at n, or true if n is nil.
func (p *fileParser) scope(o *Object, namespaced bool, n *yaml.Node) bool {
	if o.IsNamespace() {
		if !namespaced {
			p.addMistake(n, "namespaced is false for a namespace, which reads its own numbers only: leave it out")
		}
		return true
	}
	if o.Version != "" { // a known kind
		if n != nil && namespaced != o.Namespaced {
			where := "in no namespace"
			if o.Namespaced {
				where = "in namespaces"
			}
			p.addMistake(n, "%s are %s: leave namespaced out", o.Resource, where)
		}
		return o.Namespaced
	}
	o.Namespaced = namespaced
	return namespaced
}

// completeLabel makes one label of the two that hold the namespace in a rule for namespaces.
func (r *Rule) completeLabel() {
	if !r.IsOfNamespaces() {
		return
	}
	if r.NamespaceLabel == DefaultNamespaceLabel {
		r.NamespaceLabel = r.Object.Label
	} else {
		r.Object.Label = r.NamespaceLabel
	}
}
