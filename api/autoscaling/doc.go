// Package autoscaling serves over HTTP what autoscalers decide and why, and what a
// specification would do. "weir explain autoscaler", "weir explain hpa" and "weir
// autoscaler evaluate" read it.
//
// # Request
//
//	GET  /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/horizontalpodautoscalers/NAME/explanation
//	GET  /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/autoscalers/NAME/explanation
//	POST /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/evaluations[?at=TIME][&replicas=N]
//
// The body of a POST is the manifest of a HorizontalPodAutoscaler (autoscaling/v2)
// or an Autoscaler, in YAML or JSON, of at most 1 MiB. TIME is RFC 3339, or how long
// ago: "5m". An evaluation changes nothing.
//
// # Answer
//
// A Report as JSON, with apiVersion and kind. An explanation is that of the last
// decision; of an autoscaler that the controller does not know, one is made for the
// answer, which then says that no earlier decision is remembered. Errors are a
// Problem, and say which field of a manifest is wrong.
package autoscaling
