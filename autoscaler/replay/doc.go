// Package replay says how many replicas a workload would have had under another
// autoscaler: what-if over what was measured.
//
// A Trace is what is known of a workload's past: how much all of its pods together
// used, what one pod requests, how many replicas there were. Run lets
// autoscaler.Decide, the code that decides live, look at a model of the workload
// every sync period, and carries out what it says:
//
//   - The demand is what was measured, and does not change with the count of pods.
//   - It is spread evenly over the pods that are ready. Others use nothing.
//   - A new pod runs at once, is ready after Options.Startup, and is first measured
//     after Options.MetricDelay. Nothing limits how many pods there can be.
//   - A pod that is scaled away is gone at once, unready ones and the youngest first.
//   - What an Object or External metric was, it stays: it does not react to replicas.
//
// What these assumptions miss, Result.Warnings says where the trace shows it: a
// workload that was throttled at its limits would have used more on more pods; memory
// seldom moves from one pod to another as CPU does.
//
// The package is pure and deterministic. Where a trace has a gap, the autoscaler is
// told that there is no metric, the result says so, and that time counts in no total.
package replay
