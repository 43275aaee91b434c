// Package externalmetrics serves external.metrics.k8s.io: numbers that are not of
// the cluster's objects, such as the length of a queue, for the
// HorizontalPodAutoscaler. They come from a Prometheus-compatible server, by
// queries that a file of rules names (docs/external-metrics.md).
//
// A Provider answers one request with one query. It bounds how many run at once
// and how long each takes, and it keeps nothing. The time of a value is that of the
// query, and the window the longest range that the query looks back over.
//
// An answer without any series is a 404 that names the selector. So is one with a
// value that is not a number: a sum over the rest would be wrong. A server that
// cannot be reached or answers 5xx is a 503, one that is too slow a 504, and a query
// that it refuses a 500.
//
// While Run runs, the file is read again every few seconds. A new file with
// mistakes changes nothing: the rules before it stay, the mistakes are logged, and
// weir_external_rules_valid is 0.
package externalmetrics
