//go:build e2e

package apis

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// object has the fields that are read from a manifest.
type object struct {
	Kind     string
	Metadata struct{ Namespace, Name string }
}

// named is the namespace and name of an object.
type named struct{ namespace, name string }

// objectsOf returns the objects of a kind among manifests.
func objectsOf(manifests, kind string) (objects []named) {
	for doc := range strings.SplitSeq(manifests, "\n---\n") {
		var o object
		if yaml.Unmarshal([]byte(doc), &o) == nil && o.Kind == kind {
			objects = append(objects, named{o.Metadata.Namespace, o.Metadata.Name})
		}
	}
	return objects
}
