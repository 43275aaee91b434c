// Package metric is weir's vocabulary: what is measured (Entity), in which life of its counters
// (Instance), when and how much (Sample, Values), in one read of one source (Batch); and why
// each number is or is not there (Verdict, Reason). What the API server reports is in package
// cluster.
//
// The Catalogue is the one list of metrics. All names, units and help texts of the APIs, and
// docs/metrics.md, are derived from it.
//
// Package metric imports no package of weir and does no I/O. The other packages share only this
// one. It is vocabulary only: it has no step of the pipeline, no clock and no lock.
//
// # Files
//
//	catalogue.go  ID, Descriptor, Catalogue: every metric with its names, unit, group and kinds
//	unit.go       units and their factors; types of metrics; sets of kinds
//	entity.go     Entity: what a metric is about; Instance: one life of its counters
//	sample.go     Sample and Batch: what one read reports; groups, windows, baselines
//	values.go     Values: the numbers of a sample, without gaps
//	slots.go      SlotTable: a small number for each entity of a source
//	clock.go      NodeClock: how far a node's clock is ahead, and when it stepped
//	verdict.go    Reason, its layer, its evidence; severity.go how serious an absence is
//	run           the model of a run: when an instance began, and which run it is
//	series        samples as Prometheus series: names, labels, values, filters and profiles
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
