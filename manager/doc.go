// Package manager owns time: it asks which sources there are, reads each of
// them at its steady place in the interval, leads every batch through the
// pipeline in order and hands it to the sinks, so that no source, processor or
// sink can delay, block or bring down another.
//
// # The conversation
//
// The caller describes what to run in Options, and calls Run. From then on the
// manager calls: Provider.Sources to learn what to read, Source.Read on a
// deadline, each Processor in the order given, and Sink.Write through a bounded
// queue of the sink's own. Status and Ready answer from any
// goroutine.
//
// # What it promises
//
//   - A source is read by one goroutine at a time, and its processors are
//     called by that same turn: neither needs a lock.
//   - A Read that ignores its deadline is abandoned: its batch is never looked
//     at again, and the source is not read until that Read returns. Meanwhile
//     each round yields a failed batch, so that the absence has its reason.
//   - A panic becomes the error of the batch it happened in.
//   - A full queue costs that sink that batch, and no one else anything.
//   - When a source is gone, each sink is told after its last batch.
//
// # Goroutines
//
// A round is one goroutine from its timer to its sink: it reads, processes, sets the
// timer for the next round, and then writes for one of the sinks that nobody is
// writing for; each other such sink gets a goroutine for as long as batches wait for
// it. To hand a batch to a goroutine that sleeps would cost more than most of the
// stages do. A goroutine that a source or a sink does not give back is not missed:
// a watchdog goes on with the round, and the next round has one of its own.
//
// # What it leaves to others
//
// Which places to read and how (sources), what is true (processors), where
// results go (sinks). It reads the clock, and passes the time to whoever needs
// it.
//
// # Files
//
//	stages.go     the interfaces called
//	options.go    what New takes
//	manager.go    Run: from the first question to the last goroutine
//	reconcile.go  providers' answers → sources started and stopped
//	offset.go     pure: when rounds are due
//	runner.go     the life of one source: waiting, a round, waiting
//	round.go      one round: read → process → publish
//	call.go       one call of a source: limit, deadline, panic, abandonment
//	readlimits.go how many reads run at once
//	player.go     rounds that were recorded, instead of sources
//	sinkwriter.go the writes of one sink; queue.go its queue; sinks.go its status
//	pool.go       batches to fill again
//	status.go     the status of each source; readiness.go pure: whether that is enough
//	telemetry.go  metrics of the manager itself; errors.go classifies errors
package manager
