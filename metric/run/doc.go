// Package run is the model of a run of a container: when an instance began, which run of the API
// server's record it is, and whether it is the same instance as another one. It is the only place
// that compares times of starts. README.md is its design, with the reason for each tolerance.
//
//   - interval.go: when an instance began, by each piece of evidence
//   - record.go: which run of the API server's record it is
//   - order.go: how two instances relate
//   - tolerances.go: by how much each time may be off
//
// The package is pure: it has no state and no clock. What cluster knows of a container comes in as
// a Record.
package run
