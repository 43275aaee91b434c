// Package externalmetrics serves external.metrics.k8s.io: numbers that are not of
// the cluster's objects, such as the length of a queue, for the
// HorizontalPodAutoscaler. They come from a Prometheus-compatible server, by
// queries that a file of rules names; see the package rules for the file and
// docs/external-metrics.md for a guide.
//
// A Provider answers one request with one query. It asks with a bounded number of
// neighbours and until a deadline, and it keeps nothing: what an autoscaler reads
// is what Prometheus says at that moment.
//
// # Values
//
// A value is rounded to the nearest thousandth, half to even, beyond which HPAs do
// not look. Labels are those of the series without its name; the time is that of
// the query, and the window the longest range that the query looks back over.
//
// # Errors
//
// An answer without any series is a 404 that says what was chosen by, for an
// HPA's owner reads the message in the HPA's conditions, and an HPA treats an
// empty list as an error anyway. So is one with a value that is not a number:
// a sum over the rest would be wrong. A server that cannot be reached or answers
// 5xx is a 503, one that is too slow a 504, and a query that it refuses a 500.
//
// # Rules that change
//
// While Run runs, the file is read again every few seconds. A new file with mistakes changes nothing: the rules before
// it stay, the mistakes are logged, and weir_external_rules_valid is 0.
package externalmetrics
