package resourcemetrics

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
)

// OpenAPIDefinitions returns the definitions of the API's types and of all types they refer to:
// what kubectl explain podmetrics shows.
//
// k8s.io/metrics has none. The five types are the same in all versions and will not change any
// more, so they are described here. A test compares them with the Go types.
func OpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := core.GetOpenAPIDefinitions(ref)
	for _, version := range versions {
		maps.Copy(definitions, definitionsOf(version.Version, ref))
	}
	return definitions
}

// definitionsOf returns the definitions of one version.
func definitionsOf(version string, ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	name := func(what string) string { return "io.k8s.metrics.pkg.apis.metrics." + version + "." + what }
	apiVersion := textProperty("Version of the schema: metrics.k8s.io/" + version + ".")
	d := definitionBuilder{ref: ref}
	object := func(what string, properties map[string]spec.Schema) map[string]spec.Schema {
		maps.Copy(properties, map[string]spec.Schema{
			"apiVersion": apiVersion,
			"kind":       textProperty("What the object is."),
			"metadata":   d.optionalObject(what, metav1.ObjectMeta{}.OpenAPIModelName()),
			"timestamp":  d.property("When the numbers were measured: the end of the window, by the node's clock.", metav1.Time{}.OpenAPIModelName()),
			"window":     d.property("Length of the window over which the CPU use was measured.", metav1.Duration{}.OpenAPIModelName()),
		})
		return properties
	}
	list := func(what string) map[string]spec.Schema {
		return map[string]spec.Schema{
			"apiVersion": apiVersion,
			"kind":       textProperty("What the object is."),
			"metadata":   d.optionalObject("Metadata of the list.", metav1.ListMeta{}.OpenAPIModelName()),
			"items":      d.listOf("The items that have metrics.", what),
		}
	}
	const usage = `What is used: "cpu" in cores and "memory" (the working set) in bytes.`
	return map[string]common.OpenAPIDefinition{
		name("ContainerMetrics"): d.define("ContainerMetrics is what a container uses.", map[string]spec.Schema{
			"name":  textProperty("Name of the container, as in the pod's spec."),
			"usage": d.quantities(usage),
		}, "name", "usage"),
		name("NodeMetrics"): d.define("NodeMetrics is what a node uses.", object("Name and labels of the node.", map[string]spec.Schema{
			"usage": d.quantities(usage),
		}), "timestamp", "window", "usage"),
		name("NodeMetricsList"): d.define("NodeMetricsList is what nodes use.", list(name("NodeMetrics")), "items"),
		name("PodMetrics"): d.define("PodMetrics is what a pod's containers use.", object("Name, namespace and labels of the pod.", map[string]spec.Schema{
			"containers": atomicList(d.listOf("One for each container that runs.", name("ContainerMetrics"))),
		}), "timestamp", "window", "containers"),
		name("PodMetricsList"): d.define("PodMetricsList is what pods use.", list(name("PodMetrics")), "items"),
	}
}

// definitionBuilder makes definitions and records the references of each to others.
type definitionBuilder struct {
	ref common.ReferenceCallback
	// uses are the references since the last definition was made.
	uses []string
}

func (d *definitionBuilder) define(description string, properties map[string]spec.Schema, required ...string) common.OpenAPIDefinition {
	uses := d.uses
	d.uses = nil
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: description, Type: []string{"object"}, Properties: properties, Required: required,
		}},
		Dependencies: uses,
	}
}

func (d *definitionBuilder) reference(name string) spec.Ref {
	d.uses = append(d.uses, name)
	return d.ref(name)
}

// property returns a property of a type that has a definition.
func (d *definitionBuilder) property(description, name string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Description: description, Ref: d.reference(name)}}
}

// optionalObject returns a property that may be left out and is then empty.
func (d *definitionBuilder) optionalObject(description, name string) spec.Schema {
	s := d.property(description, name)
	s.Default = map[string]any{}
	return s
}

func (d *definitionBuilder) listOf(description, name string) spec.Schema {
	item := spec.Schema{SchemaProps: spec.SchemaProps{Default: map[string]any{}, Ref: d.reference(name)}}
	return spec.Schema{SchemaProps: spec.SchemaProps{
		Description: description, Type: []string{"array"}, Items: &spec.SchemaOrArray{Schema: &item},
	}}
}

func (d *definitionBuilder) quantities(description string) spec.Schema {
	value := spec.Schema{SchemaProps: spec.SchemaProps{Ref: d.reference(resource.Quantity{}.OpenAPIModelName())}}
	return spec.Schema{SchemaProps: spec.SchemaProps{
		Description: description, Type: []string{"object"},
		AdditionalProperties: &spec.SchemaOrBool{Allows: true, Schema: &value},
	}}
}

func textProperty(description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Description: description, Type: []string{"string"}}}
}

// atomicList marks a list that is replaced as a whole.
func atomicList(s spec.Schema) spec.Schema {
	s.AddExtension("x-kubernetes-list-type", "atomic")
	return s
}
