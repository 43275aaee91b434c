// Package resizeapi serves over HTTP which requests could be smaller, by what weir
// remembers of their containers' use. "weir resize recommend" reads it.
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
// A RecommendationList as JSON, also for one pod. Pods that have ended are not in it.
// Without all, pods of which nothing is to change are only counted, by the reasons.
// From and To say which time the readings really cover: weir remembers minutes.
//
// In a list pods are as weir's watch of the cluster knows them, which knows nothing of
// resize policies and of resizes under way; one pod is read from the API server.
package resizeapi
