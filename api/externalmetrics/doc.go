// Package externalmetrics serves external.metrics.k8s.io to the HorizontalPodAutoscaler: numbers of
// things outside the cluster's objects, such as the length of a queue. They come from a
// Prometheus-compatible server. A file of rules has the queries (docs/external-metrics.md).
//
// A Provider answers one request with one query. It limits how many queries run at once and how
// long each takes, and it stores nothing. The time of a value is that of the query, and the window
// is the longest range in the query.
//
// An answer without any series is a 404 that names the selector. An answer with a value that is not
// a number is a 404 too, because a sum over the other values would be wrong. A server that cannot
// be reached or answers 5xx is a 503, one that is too slow a 504, and a query that it refuses a
// 500.
//
// While Run runs, it reads the file again every few seconds. A new file with mistakes changes
// nothing: the earlier rules remain, the mistakes are logged, and weir_external_rules_valid is 0.
package externalmetrics
