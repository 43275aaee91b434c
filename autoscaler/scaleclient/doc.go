// Package scaleclient has what reads and writes the number of replicas of a workload through its
// scale subresource. It works for Deployments, StatefulSets and any custom resource that has one.
// Package scaleapi does it through an API server.
package scaleclient
