package v1alpha1

import "github.com/weir-metrics/weir/autoscaler"

// SetDefaults fills in the defaults of the API server, for an Autoscaler from a file or from a
// cluster with an older schema.
func SetDefaults(a *Autoscaler) {
	if a.Spec.Mode == "" {
		a.Spec.Mode = Active
	}
	autoscaler.Default(&a.Spec.HorizontalPodAutoscalerSpec)
}
