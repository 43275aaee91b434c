// Package v1alpha1 has the API group autoscaling.weir.dev with the kind Autoscaler: a
// HorizontalPodAutoscaler with a mode, which weir acts on.
//
// The specification has all fields of autoscaling/v2, so that a manifest of a
// HorizontalPodAutoscaler becomes one of an Autoscaler with another apiVersion and kind. The
// schema is in deploy/kustomize/components/autoscaler/crd.yaml; a test compares it with these
// types.
package v1alpha1
