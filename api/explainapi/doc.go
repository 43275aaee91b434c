// Package explainapi serves over HTTP why numbers are there, are missing or are in
// doubt: the answers of the package of the same name at the root, which it does
// not change. "weir explain" reads it.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/pods/NAME/explanation[?container=NAME]
//	GET /apis/weir.dev/v1alpha1/nodes/NAME/explanation
//	GET /apis/weir.dev/v1alpha1/missing
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/missing
//
// The paths are those of a Kubernetes API group, so that an API server can hand
// requests on and say who asks. A parameter of another name is an error; only limit
// and timeout, which "kubectl get" adds, are ignored.
//
// # Answer
//
// An ExplanationDocument or a ReportDocument as JSON, with apiVersion and kind. An unknown name is
// 404; but 503 until something was measured or the API server has listed its objects. Errors are a Problem.
package explainapi
