// Package externalmetrics answers for the metrics that rules define by PromQL (docs/external-metrics.md).
// It serves external.metrics.k8s.io to the HorizontalPodAutoscaler: numbers of things outside the
// cluster's objects, such as the length of a queue. Package custommetrics serves those of pods and other
// objects. The values come from a Prometheus-compatible server.
//
// A Provider asks one query for all objects of a namespace and for all requests that need its answer
// (share.go). It limits how many queries run at once, how long each takes and how many series it
// returns. Answers are used again for ten seconds. The time of a value is that of the query, and the
// window is the longest range in the query.
//
// An answer without any series is a 404 that names the selector. An answer with a value that is not
// a number is a 404 too, because a sum over the other values would be wrong. A server that cannot
// be reached or answers 5xx is a 503, one that is too slow a 504, and a query that it refuses a
// 500.
//
// While Run runs, it reads the file again every few seconds. A rule with mistakes is left out, or its
// earlier version remains. With mistakes outside of rules, all earlier rules remain. Mistakes are
// logged, and weir_external_rules_valid is 0.
//
// The files: provider.go has the Provider and external metrics; objects.go has the metrics of objects;
// share.go sends the queries; reload.go reads the file.
package externalmetrics
