package resourcemetrics_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/api/resourcemetrics"
	"github.com/weir-metrics/weir/test/cmptest"
)

func TestDiscovery(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(serve(t, village(t).options()))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := d.ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	if len(groups.Groups) != 1 || groups.Groups[0].PreferredVersion.GroupVersion != "metrics.k8s.io/v1" || len(groups.Groups[0].Versions) != 2 {
		t.Errorf("got groups %v, want metrics.k8s.io/v1, then v1beta1", groups.Groups)
	}
	type resource struct {
		Name, Kind string
		Namespaced bool
		Verbs      string
	}
	want := []resource{{"nodes", "NodeMetrics", false, "get,list"}, {"pods", "PodMetrics", true, "get,list"}}
	for _, version := range []string{"v1", "v1beta1"} {
		list, err := d.ServerResourcesForGroupVersion("metrics.k8s.io/" + version)
		if err != nil {
			t.Fatal(err)
		}
		var got []resource
		for _, r := range list.APIResources {
			got = append(got, resource{r.Name, r.Kind, r.Namespaced, strings.Join(r.Verbs, ",")})
		}
		cmptest.Equal(t, fmt.Sprintf("resources of %s", version), want, got)
	}
}

// TestDefinitions compares the definitions with the Go types: they have exactly the fields of
// the JSON, each with a description.
func TestDefinitions(t *testing.T) {
	definitions := resourcemetrics.OpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef("#/" + path) })
	for _, of := range []interface{ OpenAPIModelName() string }{
		v1beta1.ContainerMetrics{}, v1beta1.NodeMetrics{}, v1beta1.NodeMetricsList{}, v1beta1.PodMetrics{}, v1beta1.PodMetricsList{},
		metricsv1.ContainerMetrics{}, metricsv1.NodeMetrics{}, metricsv1.NodeMetricsList{}, metricsv1.PodMetrics{}, metricsv1.PodMetricsList{},
	} {
		definition, ok := definitions[of.OpenAPIModelName()]
		if !ok {
			t.Errorf("%s is not defined", of.OpenAPIModelName())
			continue
		}
		want, required := properties(reflect.TypeOf(of))
		got := map[string]string{}
		var refs []string
		for name, p := range definition.Schema.Properties {
			got[name] = shape(p)
			refs = append(refs, refsIn(p)...)
			if p.Description == "" {
				t.Errorf("%s.%s is not described", of.OpenAPIModelName(), name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-Go +OpenAPI):\n%s", of.OpenAPIModelName(), diff)
		}
		sorted := slices.Sorted(slices.Values(definition.Schema.Required))
		if diff := cmp.Diff(required, sorted); diff != "" {
			t.Errorf("%s: required (-Go +OpenAPI):\n%s", of.OpenAPIModelName(), diff)
		}
		if diff := cmp.Diff(set(refs), set(definition.Dependencies)); diff != "" {
			t.Errorf("%s: dependencies (-refs +got):\n%s", of.OpenAPIModelName(), diff)
		}
		for _, name := range definition.Dependencies {
			if _, ok := definitions[name]; !ok {
				t.Errorf("%s refers to %s, which is not defined", of.OpenAPIModelName(), name)
			}
		}
	}
}

// properties returns the properties that encoding/json writes for a type, and those that are
// always present.
func properties(of reflect.Type) (shapes map[string]string, required []string) {
	shapes = map[string]string{}
	for f := range of.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" { // TypeMeta
			shapes["kind"], shapes["apiVersion"] = "string", "string"
			continue
		}
		shapes[name] = goShape(f.Type)
		if options == "" {
			required = append(required, name)
		}
	}
	slices.Sort(required)
	return shapes, required
}

func goShape(of reflect.Type) string {
	if named, ok := reflect.Zero(of).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	switch of.Kind() {
	case reflect.Slice:
		return "[]" + goShape(of.Elem())
	case reflect.Map:
		return "map to " + goShape(of.Elem())
	default:
		return of.Kind().String()
	}
}

func shape(s spec.Schema) string {
	switch {
	case s.Ref.String() != "":
		return strings.TrimPrefix(s.Ref.String(), "#/")
	case s.Items != nil:
		return "[]" + shape(*s.Items.Schema)
	case s.AdditionalProperties != nil:
		return "map to " + shape(*s.AdditionalProperties.Schema)
	default:
		return strings.Join(s.Type, ",")
	}
}

func refsIn(s spec.Schema) []string {
	name := strings.TrimLeft(strings.TrimPrefix(shape(s), "map to "), "[]")
	if strings.Contains(name, ".") {
		return []string{name}
	}
	return nil
}

func set(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

func TestOpenAPI(t *testing.T) {
	config := serve(t, village(t).options())
	_, body := get(t, config, "/openapi/v2")
	var v2 spec.Swagger
	if err := json.Unmarshal(body, &v2); err != nil {
		t.Fatalf("v2: %v", err)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		if v2.Paths.Paths["/apis/metrics.k8s.io/"+version+"/namespaces/{namespace}/pods"].Get == nil {
			t.Errorf("v2 does not describe the LIST of a namespace's pods in %s", version)
		}
		pod := v2.Definitions["io.k8s.metrics.pkg.apis.metrics."+version+".PodMetrics"]
		want := []any{map[string]any{"group": "metrics.k8s.io", "version": version, "kind": "PodMetrics"}}
		cmptest.Equal(t, fmt.Sprintf("v2: kubectl explain would not find PodMetrics of %s", version), want, pod.Extensions["x-kubernetes-group-version-kind"])

		_, body = get(t, config, "/openapi/v3/apis/metrics.k8s.io/"+version)
		var v3 spec3.OpenAPI
		if err := json.Unmarshal(body, &v3); err != nil {
			t.Fatalf("v3 of %s: %v", version, err)
		}
		seen := 0
		for name, schema := range v3.Components.Schemas {
			for property, p := range schema.Properties {
				for _, ref := range v3Refs(p) {
					seen++
					if v3.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
						t.Errorf("v3: %s.%s refers to %s, which is not there", name, property, ref)
					}
				}
			}
		}
		if seen == 0 || v3.Components.Schemas["io.k8s.metrics.pkg.apis.metrics."+version+".NodeMetricsList"] == nil {
			t.Errorf("v3 of %s has %d references in %d schemas", version, seen, len(v3.Components.Schemas))
		}
	}
}

func v3Refs(s spec.Schema) (refs []string) {
	if r := s.Ref.String(); r != "" {
		refs = append(refs, r)
	}
	for _, a := range s.AllOf {
		refs = append(refs, v3Refs(a)...)
	}
	if s.Items != nil {
		refs = append(refs, v3Refs(*s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		refs = append(refs, v3Refs(*s.AdditionalProperties.Schema)...)
	}
	return refs
}
