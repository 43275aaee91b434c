package apiserver

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-metrics/weir/autoscaler/scaleclient/scaleapi"
	"github.com/weir-metrics/weir/test/simulator"
)

// TestAutoscalers lists autoscalers in both encodings and reads the scale of each one's target. A watch of
// them must not get the changes of pods.
func TestAutoscalers(t *testing.T) {
	w := newTestServer(t, simulator.Options{Nodes: 2, Pods: 20, Churn: 0.5}, Options{Autoscalers: true})
	number := 0
	for _, protobuf := range []bool{true, false} {
		client := w.client(t, protobuf)
		list, err := client.AutoscalingV2().HorizontalPodAutoscalers("").List(t.Context(), metav1.ListOptions{})
		check(t, err)
		if len(list.Items) < 10 {
			t.Fatalf("there are %d autoscalers", len(list.Items))
		}
		number = len(list.Items)
		scales, err := scaleapi.New(w.config(protobuf))
		check(t, err)
		for _, hpa := range list.Items {
			scale, _, err := scales.Get(t.Context(), hpa.Namespace, hpa.Spec.ScaleTargetRef)
			check(t, err)
			pods, err := client.CoreV1().Pods(hpa.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: scale.Selector})
			check(t, err)
			if n := int32(len(pods.Items)); n == 0 || n != scale.SpecReplicas || n != hpa.Status.CurrentReplicas {
				t.Errorf("%s/%s: %d pods, the scale has %d and the autoscaler %d", hpa.Namespace, hpa.Name, n, scale.SpecReplicas, hpa.Status.CurrentReplicas)
			}
		}
	}

	second := int64(1)
	watch, err := w.client(t, true).AutoscalingV2().HorizontalPodAutoscalers("").Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: &second})
	check(t, err)
	defer watch.Stop()
	for range 10 {
		w.advance(5 * time.Second) // pods are replaced
	}
	events := 0
	for e := range watch.ResultChan() {
		events++
		if e.Type != "ADDED" || e.Object.(*autoscalingv2.HorizontalPodAutoscaler).Spec.MaxReplicas == 0 {
			t.Errorf("the event %s of %v", e.Type, e.Object)
		}
	}
	if events != number {
		t.Errorf("the watch has %d events of %d autoscalers", events, number)
	}
}
