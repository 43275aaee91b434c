// Package model serves what Heapster served, as Heapster served it, so that
// programs made for Heapster (the Kubernetes dashboard of its time, kubedash,
// kubectl top and the HPA before metrics.k8s.io) find what they know:
//
//	/api/v1/model/...                                the newest quarter of an hour
//	/api/v1/metric-export, /api/v1/metric-export-schema  the newest numbers, whole
//	/apis/metrics/v1alpha1/...                       use, as NodeMetrics and PodMetrics
//
// docs/heapster.md lists the paths, says how to point an old client at weir,
// and names each difference. Only GET and HEAD are served. Errors are one line
// of plain text that says what to do next; an answer that leaves out what was
// asked for says why in a Warning header, which old clients do not read.
//
// # Points
//
// Heapster gave all numbers of a round one timestamp, and its clients rely on
// it: they add up points of many pods by equal timestamps. weir reads each
// node at a moment of its own. The model's points therefore lie on a grid of
// Options.Resolution that all entities share; the exact moment is in
// /apis/metrics/v1alpha1 and in the export.
//
// Metrics of which the View remembers no points, and all of namespaces and the
// cluster, have one point: the newest.
//
// # Units
//
// Values are in Heapster's units: millicores, nanoseconds of CPU time,
// milliseconds of uptime, bytes. Every point has a value that is an unsigned
// integer, and floatValue beside it where Heapster kept a float: rates other
// than CPU's, shares, capacities.
//
// # Who may see what
//
// The package authorizes nobody. Rights says what an answer needs, by the same
// reading of the path that the handler goes by, and more rather than less where a
// path is not understood.
package model
