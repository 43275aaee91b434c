package deploy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// These functions render the manifests with the part of kustomize that the manifests use. So tests
// see them as a cluster does, also on machines without kubectl. TestRenderedAsKubectlDoes compares
// the result with kubectl's.

// kustomization has the fields that weir's files use. Any other field is a mistake, or must be
// added here.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Components []string `json:"components"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
		Digest  string `json:"digest"`
	} `json:"images"`
	ConfigMapGenerator []struct {
		Name      string   `json:"name"`
		Namespace string   `json:"namespace"`
		Files     []string `json:"files"`
		Options   struct {
			DisableNameSuffixHash bool              `json:"disableNameSuffixHash"`
			Labels                map[string]string `json:"labels"`
		} `json:"options"`
	} `json:"configMapGenerator"`
	Patches []struct {
		Path   string `json:"path"`
		Patch  string `json:"patch"`
		Target *struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"target"`
	} `json:"patches"`
}

// object is one manifest.
type object map[string]any

func (o object) str(path ...string) string {
	var v any = map[string]any(o)
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[p]
	}
	s, _ := v.(string)
	return s
}

func (o object) kind() string      { return o.str("kind") }
func (o object) name() string      { return o.str("metadata", "name") }
func (o object) namespace() string { return o.str("metadata", "namespace") }

// id identifies an object.
func (o object) id() string {
	return strings.Join([]string{o.str("apiVersion"), o.kind(), o.namespace(), o.name()}, " ")
}

// readKustomization reads the kustomization of a folder.
func readKustomization(t *testing.T, dir string) kustomization {
	t.Helper()
	var k kustomization
	file := filepath.Join(dir, "kustomization.yaml")
	if err := yaml.UnmarshalStrict(readFile(t, file), &k); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return k
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readObjects reads the manifests of a file.
func readObjects(t *testing.T, file string) []object {
	t.Helper()
	var list []object
	for i, text := range documents(readFile(t, file)) {
		var o object
		if err := yaml.UnmarshalStrict(text, &o); err != nil {
			t.Fatalf("%s: document %d: %v", file, i+1, err)
		}
		list = append(list, o)
	}
	return list
}

// documents splits a YAML stream. It leaves out documents without content.
func documents(data []byte) (list [][]byte) {
	for _, text := range strings.Split("\n"+string(data), "\n---") {
		var v any
		if yaml.Unmarshal([]byte(text), &v) != nil || v != nil {
			list = append(list, []byte(text))
		}
	}
	return list
}

// render returns the objects of the kustomization in dir, after the components have changed them.
func render(t *testing.T, dir string, components ...string) []object {
	t.Helper()
	objects := apply(t, dir, nil)
	for _, c := range components {
		objects = apply(t, c, objects)
	}
	return objects
}

func apply(t *testing.T, dir string, objects []object) []object {
	t.Helper()
	k := readKustomization(t, dir)
	for _, r := range k.Resources {
		path := filepath.Join(dir, r)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			objects = append(objects, apply(t, path, nil)...)
		} else {
			objects = append(objects, readObjects(t, path)...)
		}
	}
	for _, c := range k.Components {
		objects = apply(t, filepath.Join(dir, c), objects)
	}
	for _, g := range k.ConfigMapGenerator {
		if !g.Options.DisableNameSuffixHash {
			t.Fatalf("%s: ConfigMap %s would get a suffix, which this test does not know", dir, g.Name)
		}
		data := map[string]any{}
		for _, f := range g.Files {
			data[f] = string(readFile(t, filepath.Join(dir, f)))
		}
		labels := map[string]any{}
		for key, value := range g.Options.Labels {
			labels[key] = value
		}
		objects = append(objects, object{
			"apiVersion": "v1", "kind": "ConfigMap", "data": data,
			"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "labels": labels},
		})
	}
	for _, p := range k.Patches {
		text := []byte(p.Patch)
		if p.Path != "" {
			text = readFile(t, filepath.Join(dir, p.Path))
		}
		if p.Target != nil {
			objects = patchTargets(t, dir, objects, text, p.Target.Kind, p.Target.Name)
		} else {
			objects = patchOne(t, dir, objects, text)
		}
	}
	for _, image := range k.Images {
		for _, o := range objects {
			setImage(o, image.Name, cmp.Or(image.NewName, image.Name)+reference(image.NewTag, image.Digest))
		}
	}
	return objects
}

// patchOne merges a partial object into the object that it names.
func patchOne(t *testing.T, dir string, objects []object, text []byte) []object {
	t.Helper()
	var patch object
	if err := yaml.UnmarshalStrict(text, &patch); err != nil {
		t.Fatalf("%s: patch: %v", dir, err)
	}
	i := slices.IndexFunc(objects, func(o object) bool { return o.id() == patch.id() })
	if i < 0 {
		t.Fatalf("%s: a patch is for %s, which is not there", dir, patch.id())
	}
	if patch.str("$patch") == "delete" {
		return slices.Delete(objects, i, i+1)
	}
	example, _, err := scheme.Codecs.UniversalDeserializer().Decode(mustJSON(t, objects[i]), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", objects[i].id(), err)
	}
	merged, err := strategicpatch.StrategicMergePatch(mustJSON(t, objects[i]), mustJSON(t, patch), example)
	if err != nil {
		t.Fatalf("%s: patch %s: %v", dir, patch.id(), err)
	}
	var o object
	if err := json.Unmarshal(merged, &o); err != nil {
		t.Fatal(err)
	}
	objects[i] = o
	return objects
}

// patchTargets applies a JSON patch to all objects of a kind and, unless name is empty, with this
// name.
func patchTargets(t *testing.T, dir string, objects []object, text []byte, kind, name string) []object {
	t.Helper()
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if err := yaml.UnmarshalStrict(text, &operations); err != nil {
		t.Fatalf("%s: patch: %v", dir, err)
	}
	found := false
	for _, o := range objects {
		if o.kind() != kind || name != "" && o.name() != name {
			continue
		}
		found = true
		for _, op := range operations {
			if err := operate(map[string]any(o), op.Op, strings.Split(op.Path, "/")[1:], op.Value); err != nil {
				t.Fatalf("%s: %s %s of %s: %v", dir, op.Op, op.Path, o.id(), err)
			}
		}
	}
	if !found && kind != "DaemonSet" { // a combination may have no agents
		t.Fatalf("%s: a patch is for %s %s, which is not there", dir, kind, name)
	}
	return objects
}

// operate applies one operation of a JSON patch. If a path ends in "-", the value is appended to
// the list before it.
func operate(at map[string]any, op string, path []string, value any) error {
	for len(path) > 1 {
		next := at[path[0]]
		if list, ok := next.([]any); ok {
			if path[1] == "-" && op == "add" {
				at[path[0]] = append(list, value)
				return nil
			}
			i, err := strconv.Atoi(path[1])
			if err != nil || i >= len(list) {
				return fmt.Errorf("no item %s", path[1])
			}
			next, path = list[i], path[1:]
		}
		m, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("nothing at %q", path[0])
		}
		at, path = m, path[1:]
	}
	_, there := at[path[0]]
	switch {
	case op == "add", op == "replace" && there:
		at[path[0]] = value
	case op == "remove" && there:
		delete(at, path[0])
	default:
		return fmt.Errorf("nothing at %q", path[0])
	}
	return nil
}

// reference returns the end of an image's name.
func reference(tag, digest string) string {
	if digest != "" {
		return "@" + digest
	}
	return ":" + tag
}

// setImage replaces all images with this name, whatever their tag.
func setImage(v any, name, image string) {
	switch v := v.(type) {
	case object:
		setImage(map[string]any(v), name, image)
	case map[string]any:
		if text, _ := v["image"].(string); text == name || strings.HasPrefix(text, name+":") {
			v["image"] = image
		}
		for _, child := range v {
			setImage(child, name, image)
		}
	case []any:
		for _, child := range v {
			setImage(child, name, image)
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(data)
}
