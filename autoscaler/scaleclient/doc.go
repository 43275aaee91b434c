// Package scaleclient reads and writes the number of replicas of a workload through its scale
// subresource. It works for Deployments, StatefulSets and any custom resource that has one.
//
// It finds the resource of a kind in the API server's discovery, which it caches. If a kind is
// missing, it asks again, at most once in five minutes. An autoscaler for a kind that was never
// installed therefore costs nothing.
package scaleclient
