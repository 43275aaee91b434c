// Package model serves the APIs of Heapster, so that programs made for Heapster work with
// weir: the Kubernetes dashboard of its time, kubedash, kubectl top and the HPA before
// metrics.k8s.io.
//
//	/api/v1/model/...                                    the last 15 minutes
//	/api/v1/metric-export, /api/v1/metric-export-schema  all newest numbers
//	/apis/metrics/v1alpha1/...                           usage, as NodeMetrics and PodMetrics
//
// docs/heapster.md lists the paths and each difference from Heapster. Only GET and HEAD are served.
// An error is one line of plain text that describes what to do next. An answer that lacks something it
// was asked for gives the reason in a Warning header, which old clients do not read.
//
// Clients add points that have equal timestamps, so points lie on a grid that all entities share
// (pointGrid). Values are in Heapster's units: millicores, nanoseconds of CPU time, milliseconds of
// uptime, bytes. Every point has a value that is an unsigned integer, and also a floatValue where
// Heapster kept a float.
//
// # Files
//
//   - handler.go: Options, requests, errors; path.go: the table of paths; rights.go: who may read them.
//   - points.go: metrics over time; reason.go: the warnings about missing ones.
//   - export.go: /api/v1/metric-export; usage.go: /apis/metrics/v1alpha1.
package model
