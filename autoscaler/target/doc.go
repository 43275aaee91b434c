// Package target reads and changes how many replicas a workload asks for, through
// its scale subresource: of Deployments, StatefulSets, and any custom resource that
// has one. It knows nothing else of workloads.
//
// The kind that an autoscaler names is looked up in the API server's discovery,
// which is kept, and asked again at most once in five minutes when a kind is not
// in it: an autoscaler of a kind that was never installed costs nothing.
package target
