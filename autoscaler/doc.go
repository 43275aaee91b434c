// Package autoscaler decides how many replicas a workload should have: the
// decisions of Kubernetes' HorizontalPodAutoscaler controller, with the whole
// derivation of each.
//
// It is pure. Decide takes a specification, the target's scale and pods, what the
// metrics are, what is remembered of earlier decisions, and the time; it returns
// what to do and why: how each pod was classed, each ratio, each limit that
// applied, in order. It asks no clock, no API server and no store, so the same code
// decides live, in a dry run, over a recording and in a test.
//
// A decision is carried out by whoever asked for it: CarryOut writes the count and
// the status through functions it is given, as Kubernetes' controller would; Conclude
// is its pure half, for those who write otherwise or not at all. Both return the
// memory for the next decision.
//
// The arithmetic is that of Kubernetes 1.36 (pkg/controller/podautoscaler), bit for
// bit: 64-bit thousandths, double-precision ratios, the same rounding in the same
// order. The vectors in testdata/hpa hold it to that, and test/parity compares it with
// the original on random input. testdata/derivation tells decisions in full.
//
// Specifications are taken as an API server returns them. Default and Validate stand
// in for it where one comes from a file.
package autoscaler
