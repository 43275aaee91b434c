// Package autoscaler decides how many replicas a workload should have. It makes the same decisions
// as Kubernetes' HorizontalPodAutoscaler controller and reports how each one was made.
//
// It is pure. Decide takes a specification, the target's scale and pods, the metrics, the memory of
// earlier decisions and the time. It returns the decision and every step: the class of each pod,
// each ratio and each limit, in order. It uses no clock, API server or store. The same code
// therefore decides in a cluster, in a dry run, in a replay and in a test.
//
// The caller carries a decision out. Conclude then returns the status, the Events and the memory
// for the next decision.
//
// The arithmetic is exactly that of Kubernetes 1.37 (pkg/controller/podautoscaler): 64-bit
// thousandths, double-precision ratios, the same rounding in the same order. The vectors in
// testdata/hpa verify it, and test/parity compares it with the original code on random input.
// testdata/derivation has complete decisions.
//
// Specifications must be complete, as an API server returns them. Default and Validate complete and
// check a specification from a file.
//
// The files, in the order of a decision:
//
//	input.go        the input of a decision: scale, pods, samples, settings
//	decide.go       Decide: checks, bounds, the largest proposal of the metrics
//	metric.go       one metric: its target, reading and tolerance
//	podmetric.go    metrics with a sample for each pod: classes, ratio, recount
//	valuemetric.go  Object and External metrics
//	requests.go     the requests for utilizations
//	limit.go        stabilization windows, policies and bounds of the count
//	memory.go       recommendations and changes that windows and policies read
//	conclude.go     status, events and memory after the count was written
//	decision.go     the result: decision, metrics, pods, steps and their names
//	spec.go         defaults and validation of a specification
package autoscaler
