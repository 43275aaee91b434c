// Package scaleclient reads and writes the number of replicas of a workload through its scale
// subresource: of Deployments, StatefulSets and any custom resource that has one.
//
// It finds the resource of a kind in the API server's discovery, which it caches. If a kind is
// missing it asks again, at most once in five minutes, so that an autoscaler of a kind that was
// never installed costs nothing.
package scaleclient
