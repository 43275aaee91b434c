// Package resizeapi serves over HTTP which requests could be smaller, according to the usage of
// containers that weir has in memory. "weir resize recommend" reads this API.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/recommendations
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/recommendations
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/recommendations/POD
//
// Parameters, with their defaults:
//
//	estimator=weir                                 or vpa, krr, autopilot, adaptive
//	percentile=95  headroom=15%  floor=10m         of CPU
//	memory-percentile=100  memory-headroom=20%  memory-floor=16Mi
//	resources=cpu,memory  min-history=10m
//	up=false       also let requests grow
//	limits=false   also let limits of Guaranteed pods shrink with requests
//	all=false      also list pods without a proposal
//	workloads=false  recommend for workloads, not for pods
//	workload=KIND/NAME  only for this workload of the namespace
//
// # Answer
//
// The answer is a RecommendationList as JSON, also for one pod. It does not contain pods that have
// ended. Without all, pods that have no proposal are only counted, by reason. From and To are the
// times of the first and the last reading: weir's memory has only minutes.
//
// For a list, the pods come from weir's watch of the cluster, which has neither resize policies nor
// resizes in progress. A single pod is read from the API server.
//
// A workload's recommendation is from the readings of all its pods, also of those that are gone. Its
// requests are those of its newest pod; "weir resize recommend" reads the pod templates, the autoscalers
// and the LimitRanges with the user's own rights and considers them. For that, the answer for one workload
// also has its loads: what its pods used together at each time.
//
// # Files
//
//   - request.go: paths and parameters; rights.go: who may read them; handler.go: the answers.
//   - types.go: the answers as JSON; client.go: the client that reads them.
package resizeapi
