// Package resizeapi serves over HTTP which requests could be smaller, by the usage of containers
// that weir has in memory. "weir resize recommend" reads it.
//
// # Request
//
//	GET /apis/weir.dev/v1alpha1/recommendations
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/recommendations
//	GET /apis/weir.dev/v1alpha1/namespaces/NAMESPACE/recommendations/POD
//
// Parameters, with their defaults:
//
//	percentile=95  headroom=15%  floor=10m         of CPU
//	memory-percentile=100  memory-headroom=20%  memory-floor=16Mi
//	resources=cpu,memory  min-history=10m
//	up=false       let requests grow, too
//	limits=false   let limits of Guaranteed pods shrink with requests
//	all=false      list pods that are to stay as they are, too
//
// # Answer
//
// The answer is a RecommendationList as JSON, also for one pod. It leaves out pods that have ended.
// Without all, pods that have no proposal are only counted, by reason. From and To are the first and
// the last reading: weir's memory has minutes only.
//
// In a list, pods come from weir's watch of the cluster, which has neither resize policies nor
// resizes in progress. A single pod is read from the API server.
package resizeapi
