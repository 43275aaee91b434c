// Package metric is weir's vocabulary: what is measured (Entity), in which life of its counters
// (Instance), when and how much (Sample, Values), in one read of one source (Batch); and why
// each number is or is not there (Verdict, Reason). What the API server says is in package
// cluster.
//
// The Catalogue is the one list of metrics. All names, units and help texts of the APIs, and
// docs/metrics.md, are derived from it.
//
// Package metric imports no package of weir and does no I/O. The other packages share only this
// one. It is vocabulary only: it has no step of the pipeline, no clock and no lock.
//
// # Presence
//
// Absent is not zero. A value that was not reported is absent from Values. An unknown time is
// the zero time, or 0 in a field of nanoseconds. An unknown start has the origin StartUnknown.
//
// # Ownership
//
// A Batch belongs to one goroutine at a time. A goroutine that has passed it on never writes it
// again; see Batch.
package metric
