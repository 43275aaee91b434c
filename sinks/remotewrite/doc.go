// Package remotewrite sends measured values to a store by Prometheus' remote write, version
// 2.0, or 1.0 if the receiver does not support 2.0.
//
// Series are those of /metrics/cluster. Each value has the time at which the node read it
// (a rate the end of its window) and is sent once: a repeated last known value is not sent
// again. At the end of a series a stale marker is sent.
//
// # From a batch to the receiver
//
//	Write ─▶ the request that is being filled ─▶ queue: full, compressed requests ─▶ Run: one at a time
//
// Write does no I/O. Requests are sent one at a time, so that each series arrives in order.
// The queue is bounded in bytes. If the receiver does not answer for longer than the queue lasts,
// the oldest requests are dropped.
//
//	options.go  Options, and their form in --sink
//	sink.go     batches → values that were not sent yet; totals.go those of namespaces and the cluster
//	ledger.go   the last times sent of each series
//	request.go  one request of version 2.0, by appending
//	queue.go    requests that wait
//	send.go     Run and the requests; downgrade.go 2.0 → 1.0
package remotewrite
