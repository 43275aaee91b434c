// Package replay computes from measurements how many replicas a workload would have had with
// another autoscaler.
//
// A Trace is the data of a workload over time: the usage of all its pods together, the requests of
// one pod, the number of replicas. Packages promreplay and recordingreplay make one. Run lets
// autoscaler.Decide, which is the code that decides in a cluster, decide in every sync period about
// a model of the workload, and carries the decisions out:
//
//   - The demand is the measured usage. It does not depend on the number of pods.
//   - The demand is divided evenly among the ready pods. Other pods use nothing.
//   - A new pod runs at once, is ready after Options.Startup, and has its first sample after
//     Options.MetricDelay. The number of pods is not limited.
//   - A removed pod is gone at once. Unready pods are removed first, then the youngest.
//   - Object and External metrics do not react to replicas.
//
// RunResult.Warnings shows where the trace shows that these assumptions are wrong. For example, a
// workload that was throttled at its limits would have used more with more pods, and memory rarely
// spreads to new pods as CPU does.
//
// The package is pure and deterministic. In a gap of the trace the autoscaler has no metric; the
// result reports the gap, and its time is in no total.
//
// The files: trace.go has the trace and what a specification needs from it; targetmetric.go has one
// metric; workload.go the model; run.go the loop; totals.go the totals; describe.go a decision in
// one line; comparison.go and table.go the output of commands.
package replay
