// Package v1alpha1 has the API group autoscaling.weir.dev: the kind Autoscaler,
// which is a HorizontalPodAutoscaler that weir acts on, with a mode.
//
// Its specification is autoscaling/v2's, field by field, so that a manifest of the
// one is a manifest of the other but for apiVersion and kind. The schema is in
// deploy/kustomize/components/autoscaler/crd.yaml; a test holds it to these types.
package v1alpha1
