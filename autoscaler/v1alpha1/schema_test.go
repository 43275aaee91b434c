package v1alpha1

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// openAPI has the parts of a structural schema that follow from the Go types.
type openAPI struct {
	Type       string             `json:"type"`
	Format     string             `json:"format"`
	Required   []string           `json:"required"`
	Properties map[string]openAPI `json:"properties"`
	Items      *openAPI           `json:"items"`
	Values     *openAPI           `json:"additionalProperties"`
	IntOrText  bool               `json:"x-kubernetes-int-or-string"`
	Nullable   bool               `json:"nullable"`
}

const crdFile = "../../deploy/kustomize/components/autoscaler/crd.yaml"

type definition struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind, ListKind, Plural, Singular string
		} `json:"names"`
		Versions []struct {
			Name         string                    `json:"name"`
			Served       bool                      `json:"served"`
			Storage      bool                      `json:"storage"`
			Subresources map[string]map[string]any `json:"subresources"`
			Schema       struct {
				OpenAPIV3Schema openAPI `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// TestSchemaIsOfTheTypes compares the schema with the Go types, field by field. The API server
// silently drops a field that the schema does not have.
func TestSchemaIsOfTheTypes(t *testing.T) {
	data, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var d definition
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if got, want := d.Metadata.Name, Resource+"."+Group; got != want {
		t.Errorf("it is called %s, want %s", got, want)
	}
	n := d.Spec.Names
	if n.Kind != Kind || n.ListKind != Kind+"List" || n.Plural != Resource || d.Spec.Group != Group || d.Spec.Scope != "Namespaced" {
		t.Errorf("got names %+v of group %s, %s", n, d.Spec.Group, d.Spec.Scope)
	}
	if len(d.Spec.Versions) != 1 || d.Spec.Versions[0].Name != Version || !d.Spec.Versions[0].Served || !d.Spec.Versions[0].Storage {
		t.Fatalf("got versions %+v, want %s", d.Spec.Versions, Version)
	}
	if _, has := d.Spec.Versions[0].Subresources["status"]; !has {
		t.Error("it has no status subresource: whoever may edit a specification could write what was decided")
	}
	root := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	compare(t, "spec", reflect.TypeFor[AutoscalerSpec](), root.Properties["spec"])
	compare(t, "status", reflect.TypeFor[AutoscalerStatus](), root.Properties["status"])
}

func compare(t *testing.T, path string, typ reflect.Type, s openAPI) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := func(kind, format string) {
		t.Helper()
		if s.Type != kind || s.Format != format {
			t.Errorf("%s: got %s %s, want %s %s", path, s.Type, s.Format, kind, format)
		}
	}
	switch {
	case typ == reflect.TypeFor[resource.Quantity]():
		if !s.IntOrText {
			t.Errorf("%s: a quantity may be a number or a text", path)
		}
		return
	case typ == reflect.TypeFor[metav1.Time]():
		want("string", "date-time")
		return
	}
	switch typ.Kind() {
	case reflect.String:
		want("string", "")
	case reflect.Bool:
		want("boolean", "")
	case reflect.Int32:
		want("integer", "int32")
	case reflect.Int64:
		want("integer", "int64")
	case reflect.Slice:
		want("array", "")
		if s.Items == nil {
			t.Errorf("%s: of what?", path)
			return
		}
		compare(t, path+"[]", typ.Elem(), *s.Items)
	case reflect.Map:
		want("object", "")
		if s.Values == nil {
			t.Errorf("%s: of what?", path)
			return
		}
		compare(t, path+"{}", typ.Elem(), *s.Values)
	case reflect.Struct:
		want("object", "")
		seen := map[string]bool{}
		compareFields(t, path, typ, s, seen)
		for name := range s.Properties {
			if !seen[name] {
				t.Errorf("%s.%s is in the schema alone", path, name)
			}
		}
	default:
		t.Errorf("%s: no rule for %s", path, typ)
	}
}

func compareFields(t *testing.T, path string, typ reflect.Type, s openAPI, seen map[string]bool) {
	t.Helper()
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			compareFields(t, path, f.Type, s, seen)
			continue
		}
		seen[name] = true
		child, has := s.Properties[name]
		if !has {
			t.Errorf("%s.%s is not in the schema", path, name)
			continue
		}
		if required := slices.Contains(s.Required, name); required && strings.Contains(options, "omitempty") {
			t.Errorf("%s.%s is required, but left out when it is empty", path, name)
		} else if !required && !strings.Contains(options, "omitempty") && !child.Nullable {
			t.Errorf("%s.%s is always written, and not required", path, name)
		}
		compare(t, path+"."+name, f.Type, child)
	}
}
