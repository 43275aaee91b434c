// Package remotewrite sends measured values to a store by Prometheus' remote write, version
// 2.0, or 1.0 if the receiver does not support 2.0.
//
// Series are those of /metrics/cluster. Each value has the time at which the node read it
// (a rate the end of its window) and is sent once: a repeated last known value is not sent
// again. At the end of a series a stale marker is sent. Package push describes the queue.
//
//	options.go  Options, and their form in --sink
//	labels.go   the labels of an entity
//	request.go  one request of version 2.0
//	send.go     the requests are sent; downgrade.go 2.0 → 1.0
package remotewrite
