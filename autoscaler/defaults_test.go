package autoscaler

import (
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestDefault checks what the API server's documentation promises.
func TestDefault(t *testing.T) {
	check := func(given, want string) {
		t.Helper()
		parse := func(text string) *autoscalingv2.HorizontalPodAutoscalerSpec {
			spec := &autoscalingv2.HorizontalPodAutoscalerSpec{}
			if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
				t.Fatal(err)
			}
			return spec
		}
		got := parse(given)
		Default(got)
		cmptest.Equal(t, fmt.Sprintf("of %s", given), parse(want), got)
	}
	const cpu = `metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]`
	const queue = `metrics: [{type: External, external: {metric: {name: queue}, target: {type: Value, value: "1"}}}]`
	check(`maxReplicas: 3`, `{minReplicas: 1, maxReplicas: 3, `+cpu+`}`)
	check(`{minReplicas: 0, `+queue+`}`, `{minReplicas: 0, `+queue+`}`)
	check(`behavior: {}`, `{minReplicas: 1, `+cpu+`, behavior: {
		scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [
			{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},
		scaleDown: {selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}}`)
	check(`behavior: {
		scaleUp: {selectPolicy: Min, tolerance: "0.2"},
		scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 1, periodSeconds: 30}]}}`,
		`{minReplicas: 1, `+cpu+`, behavior: {
		scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Min, tolerance: "0.2", policies: [
			{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]},
		scaleDown: {stabilizationWindowSeconds: 60, selectPolicy: Max, policies: [{type: Pods, value: 1, periodSeconds: 30}]}}}`)
}
