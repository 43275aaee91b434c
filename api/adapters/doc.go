// Package adapters lets other adapters of custom and external metrics serve through weir. The API
// server has one APIService for each group, so without it only one server can answer: KEDA or
// prometheus-adapter or weir.
//
// A Router sends a request to the first adapter of its file (docs/adapters.md) that takes it, by the
// name of the metric, the namespace, or a label that the metric selector requires. The answer is the
// adapter's, and so is the error, behind the adapter's name. Each adapter has bounds of its own in
// time, bytes, items and requests at once, so that one that hangs or lies takes nothing from the
// others and from weir's own metrics.
//
// weir has authorized the caller before it asks. The adapter sees the account whose token its entry
// names, never the caller's.
//
// An external scaler of KEDA's protocol can take the place of an adapter: it is asked by gRPC for external
// metrics (scaler.go). Its values have no labels.
//
//   - config.go: the file
//   - client.go: one adapter: requests, bounds, errors
//   - scaler.go: one external scaler; externalscaler has its protocol
//   - discovery.go: which metrics each adapter has
//   - router.go: which adapter answers a request
package adapters
