// Package model serves what Heapster served, as Heapster served it, so that
// programs made for Heapster (the Kubernetes dashboard of its time, kubedash,
// kubectl top and the HPA before metrics.k8s.io) find what they know:
//
//	/api/v1/model/...                                the newest quarter of an hour
//	/api/v1/metric-export, /api/v1/metric-export-schema  the newest numbers, whole
//	/apis/metrics/v1alpha1/...                       use, as NodeMetrics and PodMetrics
//
// docs/heapster.md lists the paths and names each difference. Only GET and HEAD are
// served. Errors are one line of plain text that says what to do next; an answer
// that leaves out what was asked for says why in a Warning header, which old
// clients do not read.
//
// Clients add up points with equal timestamps, so points lie on a grid that all
// entities share (pointGrid). Values are in Heapster's units: millicores,
// nanoseconds of CPU time, milliseconds of uptime, bytes. Every point has a value
// that is an unsigned integer, and floatValue beside it where Heapster kept a float.
package model
