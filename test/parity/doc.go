// Package parity holds weir's autoscaler to the original: it runs the decision code
// of Kubernetes itself (k8s.io/kubernetes/pkg/controller/podautoscaler) beside
// weir's on the same random input and compares all that can be seen of both.
//
// It is a module of its own, since that code comes with all of Kubernetes. README.md
// says what is compared and how to run it.
package parity
