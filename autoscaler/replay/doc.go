// Package replay computes how many replicas a workload would have had with another autoscaler,
// from what was measured.
//
// A Trace is the data of a workload over time: the usage of all its pods together, the requests
// of one pod, the count of replicas. Packages promreplay and recordingreplay make one. Run lets
// autoscaler.Decide, the code that decides live, decide about a model of the workload every
// sync period, and carries the decisions out:
//
//   - The demand is what was measured. It does not depend on the count of pods.
//   - It is divided evenly among the ready pods. Other pods use nothing.
//   - A new pod runs at once, is ready after Options.Startup, and has its first sample after
//     Options.MetricDelay. The number of pods is not limited.
//   - A removed pod is gone at once, unready ones and the youngest first.
//   - Object and External metrics do not react to replicas.
//
// RunResult.Warnings says where the trace shows that these assumptions do not fit: a workload
// that was throttled at its limits would have used more on more pods; memory seldom spreads to
// new pods as CPU does.
//
// The package is pure and deterministic. In a gap of the trace the autoscaler has no metric,
// the result says so, and the time counts in no total.
//
// The files: trace.go has the trace and what a specification needs of it, targetmetric.go one
// metric, workload.go the model, run.go the loop, totals.go the totals, describe.go a decision
// in one line, comparison.go and table.go what commands write.
package replay
