// Package run is the model of a run of a container: when an instance began, which run of the API
// server's record it is, and whether it is the same instance as another one. README.md is its
// design, with the reason for each tolerance.
//
// Other packages ask something else of starts: processors/rate, whether those that a node reports move,
// and whether one lies after a reading; sinks/memory, which of two sources has the later instance, and
// on which of two nodes a pod is.
//
//   - interval.go: when an instance began, by each piece of evidence
//   - record.go: which run of the API server's record it is
//   - order.go: how two instances relate
//   - tolerances.go: by how much each time may be off
//
// The package is pure: it has no state and no clock. What cluster knows of a container comes in as
// a Record.
package run
