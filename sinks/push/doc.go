// Package push sends measured values to one receiver over HTTP. It is what the sinks remotewrite
// and otlp share: queue, requests, retries. A protocol adds its Format and its Send.
//
// # From a batch to the receiver
//
//	Write ─▶ the request that is being filled ─▶ queue: full requests ─▶ Run: one at a time
//	                                               └─▶ write-ahead log: a file for each of them
//
// Each value has the time at which the node read it (a rate the end of its window) and is sent
// once: a repeated last known value is not sent again. The end of a series is sent, too.
//
// Write does no I/O. Requests are sent one at a time, so that each series arrives in order.
// Sender.Post sends a request again until the receiver accepts or rejects it.
// The queue is bounded in bytes. If the receiver does not answer for longer than the queue lasts,
// the oldest requests are dropped.
//
// With Options.WAL, the requests in the queue are also files, which the next weir sends if this one
// is killed. Another goroutine writes them, so that a full or slow disk delays neither Write nor
// Run.
//
//	options.go   Options, and their form in --sink
//	sink.go      batches → values that were not sent yet; totals.go those of namespaces and the cluster
//	entities.go  the last times sent of each series
//	sender.go    Run; queue.go requests that wait; wal.go their files
//	retry.go     which requests are sent again, and when; what is bounded of an answer; no redirects
//	meters.go    the sink's own metrics
package push
