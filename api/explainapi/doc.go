// Package explainapi serves explanations over HTTP: why a number is there, missing or in doubt. The
// answers are those of package explain, unchanged. "weir explain" reads this API.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/pods/NAME/explanation[?container=NAME]
//	GET /apis/weir.dev/v1alpha1/nodes/NAME/explanation
//	GET /apis/weir.dev/v1alpha1/missing
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/missing
//	GET /apis/weir.dev/v1alpha1/deaths
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/deaths[?pod=NAME[&container=NAME]]
//	GET /apis/weir.dev/v1alpha1/slow[?window=5m]
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/slow[?pod=NAME][&window=5m]
//
// The paths are those of a Kubernetes API group, so that an API server can forward requests with
// the name of the caller. An unknown parameter is an error. Only limit and timeout, which "kubectl get"
// adds, are ignored.
//
// # Answer
//
// The answer is an ExplanationDocument, a ReportDocument, a DeathDocument or a SlowDocument as JSON, with apiVersion and kind. An
// unknown name is 404. It is 503 until something was measured or the API server has listed its
// objects. An error is a Problem.
//
// # Files
//
//   - request.go: paths and parameters; rights.go: who may read them; handler.go: the answers.
//   - deaths.go: why containers and pods ended, from package explain/death.
//   - slow.go: what pods waited for, from package explain/slow.
//   - types.go: the answers as JSON; client.go: the client that reads them.
package explainapi
