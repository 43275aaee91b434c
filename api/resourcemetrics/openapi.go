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
	modelName := func(kind string) string { return "io.k8s.metrics.pkg.apis.metrics." + version + "." + kind }
	definitions := map[string]common.OpenAPIDefinition{}
	var uses []string // the types that the next definition refers to
	define := func(kind, description string, properties map[string]*spec.Schema, required ...string) {
		s := spec.Schema{SchemaProps: spec.SchemaProps{Description: description, Type: []string{"object"}, Required: required}}
		for name, property := range properties {
			s.SetProperty(name, *property)
		}
		definitions[modelName(kind)] = common.OpenAPIDefinition{Schema: s, Dependencies: uses}
		uses = nil
	}
	text := func(description string) *spec.Schema { return spec.StringProperty().WithDescription(description) }
	typed := func(name string) *spec.Schema {
		uses = append(uses, name)
		return &spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(name)}}
	}
	// A value that is left out is empty.
	optional := func(name string) *spec.Schema { return typed(name).WithDefault(map[string]any{}) }
	usage := func() *spec.Schema {
		return spec.MapProperty(typed(resource.Quantity{}.OpenAPIModelName())).WithDescription(`What is used: "cpu" in cores and "memory" (the working set) in bytes.`)
	}
	apiVersion, kindOf := text("Version of the schema: metrics.k8s.io/"+version+"."), text("What the object is.")
	object := func(metadata string, own map[string]*spec.Schema) map[string]*spec.Schema {
		maps.Copy(own, map[string]*spec.Schema{
			"apiVersion": apiVersion,
			"kind":       kindOf,
			"metadata":   optional(metav1.ObjectMeta{}.OpenAPIModelName()).WithDescription(metadata),
			"timestamp":  typed(metav1.Time{}.OpenAPIModelName()).WithDescription("When the numbers were measured: the end of the window, by the node's clock."),
			"window":     typed(metav1.Duration{}.OpenAPIModelName()).WithDescription("Length of the window over which the CPU use was measured."),
		})
		return own
	}
	list := func(kind string) map[string]*spec.Schema {
		return map[string]*spec.Schema{
			"apiVersion": apiVersion,
			"kind":       kindOf,
			"metadata":   optional(metav1.ListMeta{}.OpenAPIModelName()).WithDescription("Metadata of the list."),
			"items":      spec.ArrayProperty(optional(modelName(kind))).WithDescription("The items that have metrics."),
		}
	}
	define("ContainerMetrics", "ContainerMetrics is what a container uses.", map[string]*spec.Schema{
		"name": text("Name of the container, as in the pod's spec."), "usage": usage(),
	}, "name", "usage")
	define("NodeMetrics", "NodeMetrics is what a node uses.",
		object("Name and labels of the node.", map[string]*spec.Schema{"usage": usage()}), "timestamp", "window", "usage")
	define("NodeMetricsList", "NodeMetricsList is what nodes use.", list("NodeMetrics"), "items")
	containers := spec.ArrayProperty(optional(modelName("ContainerMetrics"))).WithDescription("One for each container that runs.")
	containers.AddExtension("x-kubernetes-list-type", "atomic") // it is replaced as a whole
	define("PodMetrics", "PodMetrics is what a pod's containers use.",
		object("Name, namespace and labels of the pod.", map[string]*spec.Schema{"containers": containers}), "timestamp", "window", "containers")
	define("PodMetricsList", "PodMetricsList is what pods use.", list("PodMetrics"), "items")
	return definitions
}
