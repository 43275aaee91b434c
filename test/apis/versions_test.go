//go:build e2e

package apis

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestVersions reads metrics.k8s.io in both versions through the API server, in rounds, while
// nodes are read. Each object of v1 must be that of v1beta1 as it was before or after.
func TestVersions(t *testing.T) {
	const rounds = 20
	w := sharedCluster
	namespace := w.namespace(t, "versions")
	w.create(t, namespace, pod("web", container("app", "use", "--millicores=20", "--bytes=33554432"), container("helper", "pause")))
	w.resourceMetricsFrom(t, ours)
	serves(t, "the cluster", w.aggregated, namespace, "web/app", "web/helper")
	seen, atOnce := map[string]bool{}, 0
	for round := range rounds {
		before, err := w.objectsOfVersion(t.Context(), "v1beta1")
		if err != nil {
			t.Fatal(err)
		}
		stable, err := w.objectsOfVersion(t.Context(), "v1")
		if err != nil {
			t.Fatal(err)
		}
		after, err := w.objectsOfVersion(t.Context(), "v1beta1")
		if err != nil {
			t.Fatal(err)
		}
		for name, object := range stable {
			if object != before[name] && object != after[name] {
				t.Errorf("round %d: %s in v1 is\n%s\nin v1beta1 before\n%s\nand after\n%s", round, name, object, before[name], after[name])
			}
			seen[object] = true
		}
		atOnce = max(atOnce, len(stable))
		for name := range before {
			if _, ends := after[name]; ends && stable[name] == "" {
				t.Errorf("round %d: v1 lacks %s", round, name)
			}
		}
		wait(t, time.Second)
	}
	if len(seen) <= atOnce {
		t.Errorf("%d different objects in %d rounds, of %d at once: the numbers did not change", len(seen), rounds, atOnce)
	}
}

// objectsOfVersion returns all nodes and pods of a version as JSON, without what each answer has
// of its own: the version and the time of the answer.
func (w *testCluster) objectsOfVersion(ctx context.Context, version string) (map[string]string, error) {
	objects := map[string]string{}
	for _, resource := range []string{"nodes", "pods"} {
		out, stderr, err := w.Kubectl(ctx, "get", "--raw", "/apis/metrics.k8s.io/"+version+"/"+resource)
		if err != nil {
			return nil, fmt.Errorf("list %s of %s: %w: %s", resource, version, err, stderr)
		}
		var list struct {
			APIVersion string `json:"apiVersion"`
			Items      []struct {
				Metadata   metav1.ObjectMeta `json:"metadata"`
				Timestamp  json.RawMessage   `json:"timestamp"`
				Window     json.RawMessage   `json:"window"`
				Usage      json.RawMessage   `json:"usage,omitempty"`
				Containers json.RawMessage   `json:"containers,omitempty"`
			} `json:"items"`
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			return nil, err
		}
		if want := "metrics.k8s.io/" + version; list.APIVersion != want {
			return nil, fmt.Errorf("asked for %s, got %s", want, list.APIVersion)
		}
		for _, item := range list.Items {
			item.Metadata.CreationTimestamp = metav1.Time{}
			text, err := json.Marshal(item)
			if err != nil {
				return nil, err
			}
			objects[resource+"/"+item.Metadata.Namespace+"/"+item.Metadata.Name] = string(text)
		}
	}
	return objects, nil
}
