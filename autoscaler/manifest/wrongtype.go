package manifest

import (
	gojson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	sigsyaml "sigs.k8s.io/yaml"
)

// decodeError returns the decoder's error about doc. If a value has the wrong type, it names the field,
// what must stand there and what does.
func decodeError(doc []byte, err error) error {
	if wrong := (*gojson.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		found := "a " + wrong.Value
		if kind, value, ok := strings.Cut(wrong.Value, " "); ok { // "number 1.5"
			found = "the " + kind + " " + value
		}
		return fmt.Errorf("%s: must be %s, and is %s", wrong.Field, wantedType(wrong.Type), strings.NewReplacer("a array", "a list", "a object", "a map", "a bool", "a boolean").Replace(found))
	}
	var content map[string]any
	if sigsyaml.Unmarshal(doc, &content) == nil {
		if field, value := wrongQuantity("spec", "", content["spec"]); field != "" {
			return fmt.Errorf("%s: %q is not a quantity: write one such as 2, 500m or 1Gi", field, value)
		}
	}
	return fmt.Errorf("read manifest: %w", err)
}

// wantedType describes the values that a field of type t accepts.
func wantedType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int32:
		return "a whole number of at most 32 bits"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a string, in quotes if it looks like a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "a map"
}

// wrongQuantity returns the path and the value of the first field of content, which is at a path, that
// should be a quantity and is none. name is the name of the field that content is in.
func wrongQuantity(path, name string, content any) (field, value string) {
	switch content := content.(type) {
	case []any:
		for i, item := range content {
			if field, value = wrongQuantity(fmt.Sprintf("%s[%d]", path, i), name, item); field != "" {
				return field, value
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(content)) {
			at, item := path+"."+key, content[key]
			if name == "target" && (key == "value" || key == "averageValue") || key == "tolerance" {
				text := fmt.Sprint(item)
				if _, err := resource.ParseQuantity(text); err != nil && item != nil {
					return at, text
				}
			} else if field, value = wrongQuantity(at, key, item); field != "" {
				return field, value
			}
		}
	}
	return "", ""
}
