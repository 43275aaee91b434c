// Package remotewrite sends what the pipeline measured to a store that speaks
// Prometheus' remote write, 2.0 and, where the receiver knows no other, 1.0.
//
// Series are those of /metrics/cluster, each value with the time it was read by the
// node (of a rate, the end of its window), and each value once: what stands in for a
// missed reading is not sent again. Where a series ends, a stale marker says so.
//
// # From a batch to the receiver
//
//	Write ─▶ outbox: the request being filled ─▶ queue: full requests, packed ─▶ Run: one at a time
//
// Write does no I/O. One request follows the other, so that each series arrives in
// order. The queue is bounded by its bytes; a receiver that is away for no longer
// than that lasts misses nothing, and beyond it the oldest go first.
//
//	options.go  what New takes, and how --sink spells it
//	sink.go     batches → values that were not sent yet; totals.go those of namespaces and the cluster
//	ledger.go   what was sent of each series last
//	request.go  one request of version 2.0, by appending
//	queue.go    requests that wait
//	send.go     the one that sends; downgrade.go 2.0 → 1.0
package remotewrite
