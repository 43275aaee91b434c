// Package parity compares weir's autoscaler with the original. It runs the
// decision code of Kubernetes (k8s.io/kubernetes/pkg/controller/podautoscaler)
// and weir's on the same random input and compares everything that can be
// observed of both.
//
// It is a module of its own, because that code depends on all of Kubernetes.
// README.md says what is compared and how to run it.
package parity
