// Package manager owns time: it reads each source at its moment of the interval, calls the
// processors in order and gives the batch to the sinks. No source, processor or sink can delay
// or stop another one.
//
// # What it promises
//
//   - One goroutine at a time reads a source and calls its processors: neither needs a lock.
//   - A Read that ignores its deadline is abandoned: its batch is not used, and the source is not
//     read until that Read returns. Meanwhile each round gives a failed batch, so that the
//     absence has its reason.
//   - A panic becomes the error of its batch.
//   - If the queue of a sink is full, only that sink loses the batch.
//   - When a source is gone, each sink that wants to know is informed after its last batch.
//
// # Goroutines
//
// A round is one goroutine from its timer to its sink: it reads, processes, sets the timer for
// the next round, and then drains the queue of one sink that no goroutine drains. Each other such
// sink gets a goroutine until its queue is empty. Waking a goroutine for each batch would cost
// more than most of the stages do. If a read or a write does not return, only its goroutine is
// lost: a watchdog continues the round, and the next round has its own goroutine.
//
// # Files
//
//	stages.go     the interfaces that the manager calls
//	options.go    Options
//	manager.go    Run and the shutdown
//	reconcile.go  starts and stops sources by the answers of the providers
//	offset.go     pure: when rounds are due
//	runner.go     the life of one source
//	round.go      one round: read → process → publish
//	call.go       one call of a source: limit, deadline, panic, abandonment
//	readslots.go  how many reads run at once
//	player.go     recorded rounds in place of sources
//	sinkwriter.go the writes of one sink; queue.go its queue; sinks.go its status
//	pool.go       batches to fill again
//	status.go     the status of each source; readiness.go pure: whether that is enough
//	telemetry.go  metrics of the manager itself, nodemetrics.go of nodes; errors.go classifies errors
package manager
