package resizecmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/resize"
)

// patchFormat is the value of --output for strategic merge patches.
const patchFormat = "patch"

// writesManifests reports whether the output is for manifests, not for people.
func (r *recommendCommand) writesManifests() bool { return r.output == patchFormat || r.manifest != "" }

// writePatches writes a strategic merge patch for each workload whose requests are to change, as one
// YAML document each. What has no patch is a comment.
func (r *recommendCommand) writePatches(out io.Writer, list *resizeapi.RecommendationList) error {
	var text strings.Builder
	for _, rec := range list.Items {
		var hpas map[string]*autoscalingv2.HorizontalPodAutoscalerSpec
		if r.withHPA {
			hpas = adoptPairs(rec)
		}
		if len(rec.Changes()) == 0 {
			continue
		}
		if reason := unpatchable(rec); reason != "" {
			fmt.Fprintf(&text, "# %s in namespace %s has no patch: %s.\n", rec.Workload, rec.Namespace, reason)
			continue
		}
		body, err := yaml.Marshal(patchOf(rec))
		if err != nil {
			return fmt.Errorf("write the patch of %s: %w", rec.Workload, err)
		}
		fmt.Fprintf(&text, "---\n# kubectl patch %s -n %s --patch-file FILE\n%s", strings.Replace(rec.Workload.String(), "/", " ", 1), rec.Namespace, body)
		for _, name := range slices.Sorted(maps.Keys(hpas)) {
			if body, err = yaml.Marshal(hpaPatch(rec.Namespace, name, hpas[name])); err != nil {
				return fmt.Errorf("write the patch of the HPA of %s: %w", rec.Workload, err)
			}
			fmt.Fprintf(&text, "---\n# Only together with the patch of %s above: pause the HPA meanwhile.\n%s", rec.Workload, body)
		}
	}
	if text.Len() == 0 {
		text.WriteString("# No request is to change. Without -o patch the command shows why.\n")
	}
	_, err := io.WriteString(out, strings.TrimPrefix(text.String(), "---\n"))
	return err
}

// unpatchable returns why there is no patch for a workload; empty if there is one.
func unpatchable(rec *resize.PodRecommendation) string {
	switch {
	case !rec.Workload.FromTemplate:
		return "its template could not be read from the API server"
	case rec.Workload.Kind == "Job":
		return "the template of a Job cannot be changed; change what creates the Job"
	}
	return ""
}

// patchOf returns the patch of a workload's template.
func patchOf(rec *resize.PodRecommendation) map[string]any {
	template := &resize.PodResources{}
	for i := range rec.Requests {
		a := &rec.Requests[i]
		if a.Container == "" || template.Container(a.Container) != nil {
			continue
		}
		c := resize.ContainerResources{Name: a.Container, Role: cluster.Regular}
		if a.Sidecar {
			c.Role = cluster.Sidecar
		}
		template.Containers = append(template.Containers, c)
	}
	return workloadRef(rec.Workload.Kind, rec.Namespace, rec.Workload.Name).Patch(template, rec.Changes())
}
