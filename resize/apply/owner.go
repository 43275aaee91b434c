package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/resize"
)

// FieldOwner is a field manager that has set a value of a template.
type FieldOwner struct {
	Manager string
	// Tool is the tool that keeps the workload as its repository has it, such as "Argo CD"; empty if the
	// manager is not known as one.
	Tool string
	// Fields are the values that it has set: "memory request of web".
	Fields []string
}

// tools are the managers of tools that write again what their repository has, by the beginning of their names.
var tools = []struct{ prefix, tool string }{
	{"argocd", "Argo CD"}, {"argo-cd", "Argo CD"}, {"gitops-agent", "Argo CD"},
	{"kustomize-controller", "Flux"}, {"helm-controller", "Flux"}, {"flux", "Flux"},
	{"helm", "Helm"}, {"fleetagent", "Fleet"}, {"terraform", "Terraform"}, {"opentofu", "OpenTofu"}, {"pulumi", "Pulumi"},
}

// fieldSet is a set of fields as managedFields has it (FieldsV1).
type fieldSet map[string]fieldSet

// at returns the set below a path, and whether the path is in the set.
func (s fieldSet) at(path ...string) (fieldSet, bool) {
	for _, key := range path {
		next, ok := s[key]
		if !ok {
			return nil, false
		}
		s = next
	}
	return s, true
}

// Owners returns the field managers that have set values which changes would overwrite, in the order of the
// workload's managedFields, without weir's own.
func (t *Template) Owners(changes []resize.ResourceChange) (owners []FieldOwner) {
	for _, entry := range t.object.ManagedFields {
		if entry.FieldsV1 == nil || entry.Subresource != "" || entry.Manager == fieldManager {
			continue
		}
		var set fieldSet
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) != nil {
			continue
		}
		if fields := t.ownedFields(set, changes); len(fields) > 0 {
			owners = append(owners, FieldOwner{entry.Manager, toolOf(entry), fields})
		}
	}
	return owners
}

func toolOf(entry metav1.ManagedFieldsEntry) string {
	name := strings.ToLower(entry.Manager)
	for _, t := range tools {
		if strings.HasPrefix(name, t.prefix) {
			return t.tool
		}
	}
	return ""
}

// ownedFields returns those of the changed values that are in a set.
func (t *Template) ownedFields(set fieldSet, changes []resize.ResourceChange) (fields []string) {
	spec := []string{"f:spec", "f:template", "f:spec"}
	if t.Kind == "CronJob" {
		spec = slices.Concat([]string{"f:spec", "f:jobTemplate"}, spec)
	}
	for _, c := range changes {
		path, name := spec, "the pod"
		if container := t.Pod.Container(c.Container); container != nil {
			list := "f:initContainers"
			if container.Role == cluster.Regular {
				list = "f:containers"
			}
			path, name = slices.Concat(spec, []string{list, fmt.Sprintf(`k:{"name":%q}`, c.Container)}), c.Container
		}
		own, _ := set.at(slices.Concat(path, []string{"f:resources"})...)
		if _, ok := own.at("f:requests", "f:"+string(c.Resource)); ok && c.Request.Set {
			fields = append(fields, fmt.Sprintf("%s request of %s", c.Resource, name))
		}
		if _, ok := own.at("f:limits", "f:"+string(c.Resource)); ok && c.Limit.Set {
			fields = append(fields, fmt.Sprintf("%s limit of %s", c.Resource, name))
		}
	}
	return fields
}
