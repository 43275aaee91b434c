// Package memory stores what the pipeline measured and gives it to readers as immutable
// snapshots. A LIST therefore never delays a scrape.
//
// It keeps two stores. The short one holds the full samples of the last round of
// each source of each node. The long one, the history, holds the metrics that APIs serve over
// time, at the resolution they were read, in about two bytes a point.
//
// # What is stored
//
// An entityTable has the data that seldom changes: names, instances, and which metrics there
// are. Rounds share it until it changes. The data of each round is one slice of words, in the
// order of the table, and one slice of bytes for the history. An unchanged node costs these two
// and a few words to publish them, however large the cluster is. If no Snapshot was taken
// between two of its rounds, the slice of words is reused.
//
// # What is served
//
// Only groups that are Measured or Ambiguous are served. For a sample that identity rejected,
// only the verdict is kept. An entity that is missing from a batch is missing from the next
// snapshot.
//
// Three things span batches and are decided here: several sources read one node, several
// nodes report one pod, and namespaces and the cluster have sums.
//
// The manager has the queues, deadlines and counters of dropped batches. It calls Forget when
// a source is gone for good.
//
// # Files
//
//   - memory.go: the Sink; Write takes a batch apart by source and node. options.go: its options.
//   - entities.go: entityTable, the entities of one source of one node, sorted.
//   - rounds.go: round, the numbers of one read, and recordLayout, how a record is laid out.
//   - history.go: what a new round adds to the history. points.go: its rows, and reading them.
//     pack.go: how rounds are packed by columns, and float24.
//   - verdicts.go: verdictIndex, the verdicts of a source, and their times; SourceStatus.
//   - nodes.go: nodeList and nodesByPod, which snapshots share. publish.go: how a round gets
//     into the next Snapshot.
//   - snapshot.go: what readers ask. merge.go and podsources.go: several sources of one node. placement.go:
//     several nodes that report one pod. totals.go: sums. usage.go: what metrics.k8s.io reads.
package memory
