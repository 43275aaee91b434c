// Package metric is weir's vocabulary: what is measured (Entity), by which
// counter life (Instance), when and how much (Sample, Values), in one read of
// one source (Batch); and what became of every number that should be there
// (Verdict, Reason). What the API server says beside it is in package cluster.
//
// The Catalogue is the one list of metrics. Every name, unit and help text in
// every API is derived from it, and so is docs/metrics.md.
//
// Package metric imports nothing of weir's and does no I/O. All other packages
// import it, and meet only here. It never grows beyond vocabulary: no step of
// the pipeline, no clock, no lock.
//
// # Presence
//
// Absent is not zero. A value that was not reported is absent from Values, a
// time that is not known is the zero time (or 0 in a nanosecond field), and a
// start that is not known has StartUnknown as its origin.
//
// # Ownership
//
// A Batch belongs to one goroutine at a time. Whoever hands it on never writes
// it again; see Batch.
package metric
