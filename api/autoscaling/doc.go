// Package autoscaling serves over HTTP what autoscalers decide and why, and what a specification
// would do. "weir explain autoscaler", "weir explain hpa" and "weir autoscaler evaluate" read this
// API.
//
// # Request
//
//	GET  /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/horizontalpodautoscalers/NAME/explanation
//	GET  /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/autoscalers/NAME/explanation
//	POST /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/evaluations[?at=TIME][&replicas=N]
//
// The body of a POST is the manifest of a HorizontalPodAutoscaler (autoscaling/v2) or an
// Autoscaler, in YAML or JSON, of at most 1 MiB. TIME is RFC 3339, or how long ago: "5m". An
// evaluation changes nothing.
//
// # Answer
//
// The answer is a Response as JSON: a report with apiVersion and kind. An explanation reports the
// last decision. If the controller does not know the autoscaler, a decision is made for the answer,
// and the answer reports that there is no earlier one. An error is a Problem; it names the field of a
// manifest that is wrong.
//
// # Files
//
//   - request.go: paths and parameters; rights.go: who may read them; handler.go: the answers.
//   - types.go: the answers as JSON; client.go: the client that reads them.
package autoscaling
