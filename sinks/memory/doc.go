// Package memory remembers what the pipeline measured and shows it to readers
// as immutable snapshots, so that a LIST never holds up a scrape.
//
// It keeps two stores. The short one holds the full samples of the last round
// (or rounds) of each source of each node. The long one, the history, holds the
// metrics the APIs serve over time, at the resolution they were read and in about
// two bytes a point.
//
// # What is stored
//
// What seldom changes (names, instances, which metrics there are, verdicts on
// groups) is a directory, shared by rounds until it changes. What changes each
// round is one slice of words, in the directory's order, and one of bytes for the
// history; see round.go and pack.go. A node that did not change costs these two and
// a few words that publish them, however large the cluster is; and where no Snapshot
// was taken between two rounds of it, the first slice is used again.
//
// # What is served
//
// Only groups that are Measured or Ambiguous; a sample that identity turned
// away leaves nothing but its verdict. What is missing from a batch is missing
// from the next snapshot.
//
// What reaches across batches is settled here: several sources that read one
// node (merge.go), one pod that two nodes report (place.go), the sums of
// namespaces and of the cluster (total.go).
//
// Queues, deadlines and counters of what was dropped on the way belong to the
// manager; it also says, by Forget, when a source is gone for good.
package memory
