//go:build e2e

package apis

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The parts of the manifests below.
const (
	target   = `scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, `
	bounds   = `maxReplicas: 5, `
	whole    = target + bounds
	cpu      = `{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`
	external = `{type: External, external: {metric: {name: queue_depth}, target: {type: AverageValue, averageValue: "10"}}}`
)

// TestAutoscalerSpecs sends the same specifications to the real API server as a
// HorizontalPodAutoscaler and as an Autoscaler. The API server must reject the
// same ones of both, and set the same defaults.
func TestAutoscalerSpecs(t *testing.T) {
	w := sharedCluster
	namespace := w.namespace(t, "specs")
	send := func(gvr schema.GroupVersionResource, kind, spec string) (*autoscalingv2.HorizontalPodAutoscalerSpec, map[string]any, error) {
		t.Helper()
		var content map[string]any
		if err := yaml.Unmarshal([]byte("{"+strings.TrimSuffix(strings.TrimSpace(spec), ",")+"}"), &content); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
		u.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
		u.SetName("web")
		got, err := w.dynamic.Resource(gvr).Namespace(namespace).Create(t.Context(), u,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			return nil, nil, err
		}
		b, err := json.Marshal(got.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		var s autoscalingv2.HorizontalPodAutoscalerSpec
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		return &s, got.Object["spec"].(map[string]any), nil
	}
	hpas := schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

	refused := func(message, spec, want string) {
		t.Helper()
		if _, _, err := send(hpas, "HorizontalPodAutoscaler", spec); err == nil {
			t.Errorf("%s: a HorizontalPodAutoscaler is accepted with {%s}", message, spec)
		}
		_, _, err := send(autoscalers, "Autoscaler", spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: an Autoscaler with {%s} has error %v, want one that says %q", message, spec, err, want)
		}
	}
	accepted := func(what, spec string) {
		t.Helper()
		want, _, err := send(hpas, "HorizontalPodAutoscaler", spec)
		if err != nil {
			t.Errorf("%s: a HorizontalPodAutoscaler with {%s}: %v", what, spec, err)
			return
		}
		got, raw, err := send(autoscalers, "Autoscaler", spec)
		if err != nil {
			t.Errorf("%s: an Autoscaler with {%s}: %v", what, spec, err)
			return
		}
		if raw["mode"] != "Active" {
			t.Errorf("%s: mode is %v, want Active", what, raw["mode"])
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })); diff != "" {
			t.Errorf("%s: {%s} as a HorizontalPodAutoscaler (-) and as an Autoscaler (+):\n%s", what, spec, diff)
		}
	}
	metrics := func(m ...string) string { return whole + "metrics: [" + strings.Join(m, ", ") + "]" }
	behavior := func(b string) string { return whole + "behavior: {" + b + "}" }

	accepted("only what must be there", whole)
	accepted("a minimum", whole+`minReplicas: 2`)
	accepted("as many at least as at most", whole+`minReplicas: 5`)
	accepted("CPU", metrics(cpu))
	accepted("memory by its value", metrics(`{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 500Mi}}}`))
	accepted("one container", metrics(`{type: ContainerResource, containerResource: {name: cpu, container: app, target: {type: Utilization, averageUtilization: 50}}}`))
	accepted("pods", metrics(`{type: Pods, pods: {metric: {name: requests, selector: {matchLabels: {verb: GET}}}, target: {type: AverageValue, averageValue: 1500m}}}`))
	accepted("an object", metrics(`{type: Object, object: {metric: {name: requests}, describedObject: {apiVersion: v1, kind: Service, name: web}, target: {type: Value, value: "0.5"}}}`))
	accepted("several", metrics(cpu, external))
	accepted("an empty behavior", behavior(``))
	accepted("a window down", behavior(`scaleDown: {stabilizationWindowSeconds: 0}`))
	accepted("a window up", behavior(`scaleUp: {stabilizationWindowSeconds: 60}`))
	accepted("the longest window", behavior(`scaleDown: {stabilizationWindowSeconds: 3600}`))
	accepted("policies down", behavior(`scaleDown: {policies: [{type: Pods, value: 1, periodSeconds: 60}], selectPolicy: Min}`))
	accepted("policies up", behavior(`scaleUp: {policies: [{type: Percent, value: 10, periodSeconds: 1800}]}`))
	accepted("never down", behavior(`scaleDown: {selectPolicy: Disabled}`))
	accepted("a tolerance", behavior(`scaleUp: {tolerance: "0.05"}, scaleDown: {tolerance: 200m}`))

	refused("no target", bounds, "scaleTargetRef")
	refused("a target without a name", bounds+`scaleTargetRef: {kind: Deployment}`, "name")
	refused("a target without a kind", bounds+`scaleTargetRef: {name: web}`, "kind")
	refused("a target's name with a slash", bounds+`scaleTargetRef: {kind: Deployment, name: a/b}`, "scaleTargetRef.name")
	refused("no maximum", target, "maxReplicas")
	refused("a maximum of 0", target+`maxReplicas: 0`, "maxReplicas")
	refused("a negative minimum", whole+`minReplicas: -1`, "minReplicas")
	refused("a minimum above the maximum", whole+`minReplicas: 6`, "maxReplicas")
	refused("no such metric", metrics(`{type: Weather}`), "Weather")
	refused("a metric without a type", metrics(`{resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`), "type")
	refused("a metric without a source", metrics(`{type: Resource}`), "resource")
	refused("another source than the type says", metrics(`{type: Pods, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}`), "pods")
	refused("two sources", metrics(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}, external: {metric: {name: queue_depth}, target: {type: Value, value: "1"}}}`), "external")
	refused("a resource without a name", metrics(`{type: Resource, resource: {name: "", target: {type: Utilization, averageUtilization: 50}}}`), "name")
	refused("no container", metrics(`{type: ContainerResource, containerResource: {name: cpu, container: "", target: {type: Utilization, averageUtilization: 50}}}`), "container")
	refused("a metric without a name", metrics(`{type: External, external: {metric: {name: ""}, target: {type: Value, value: "1"}}}`), "name")
	refused("a metric's name with a slash", metrics(`{type: External, external: {metric: {name: a/b}, target: {type: Value, value: "1"}}}`), "name")
	refused("a target of no type", metrics(`{type: Resource, resource: {name: cpu, target: {averageUtilization: 50}}}`), "type")
	refused("a target of another type", metrics(`{type: Resource, resource: {name: cpu, target: {type: Share, averageUtilization: 50}}}`), "Share")
	refused("a target without a number", metrics(`{type: Resource, resource: {name: cpu, target: {type: Utilization}}}`), "averageUtilization")
	refused("a target of 0", metrics(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 0}}}`), "averageUtilization")
	refused("a negative value", metrics(`{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: "-1"}}}`), "averageValue")
	refused("utilization and a value", metrics(`{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50, averageValue: "1"}}}`), "averageValue")
	refused("pods by their utilization", metrics(`{type: Pods, pods: {metric: {name: requests}, target: {type: Utilization, averageUtilization: 50}}}`), "averageValue")
	refused("an object without a number", metrics(`{type: Object, object: {metric: {name: requests}, describedObject: {kind: Service, name: web}, target: {type: Value}}}`), "value")
	refused("a described object without a name", metrics(`{type: Object, object: {metric: {name: requests}, describedObject: {kind: Service, name: ""}, target: {type: Value, value: "1"}}}`), "name")
	refused("an external metric with two numbers", metrics(`{type: External, external: {metric: {name: queue_depth}, target: {type: Value, value: "1", averageValue: "1"}}}`), "value")
	refused("a minimum of 0 on CPU alone", whole+`minReplicas: 0, metrics: [`+cpu+`]`, "minReplicas")
	refused("a negative window", behavior(`scaleDown: {stabilizationWindowSeconds: -1}`), "stabilizationWindowSeconds")
	refused("a window of more than an hour", behavior(`scaleUp: {stabilizationWindowSeconds: 3601}`), "stabilizationWindowSeconds")
	refused("no policies", behavior(`scaleUp: {policies: []}`), "policies")
	refused("a policy of no such type", behavior(`scaleUp: {policies: [{type: Nodes, value: 1, periodSeconds: 60}]}`), "Nodes")
	refused("a policy of 0", behavior(`scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 60}]}`), "value")
	refused("a policy without a period", behavior(`scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 0}]}`), "periodSeconds")
	refused("a period of more than half an hour", behavior(`scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}`), "periodSeconds")
	refused("no such selection", behavior(`scaleUp: {selectPolicy: Random}`), "Random")
	refused("a negative tolerance", behavior(`scaleUp: {tolerance: "-0.1"}`), "tolerance")

	// What a HorizontalPodAutoscaler does not have.
	if _, _, err := send(autoscalers, "Autoscaler", whole+`mode: Maybe`); err == nil || !strings.Contains(err.Error(), `"Active", "DryRun"`) {
		t.Errorf("mode Maybe: got %v, want an error that names the modes", err)
	}
	if _, raw, err := send(autoscalers, "Autoscaler", whole+`mode: DryRun`); err != nil || raw["mode"] != "DryRun" {
		t.Errorf("mode DryRun: got %v, %v", raw["mode"], err)
	}
	// For a HorizontalPodAutoscaler, scaling to zero needs a feature gate of the
	// API server. For an Autoscaler it needs a flag of weir, and the specification
	// is valid.
	if _, _, err := send(autoscalers, "Autoscaler", whole+`minReplicas: 0, metrics: [`+external+`]`); err != nil {
		t.Errorf("a minimum of 0 with an external metric: %v", err)
	}
	t.Logf("kubectl explain autoscaler.spec:\n%s", tail(w.kubectl(t, "explain", "autoscaler.spec"), 40))
}
