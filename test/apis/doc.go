// Package apis tests weir's metrics APIs as a cluster uses them: a real
// Kubernetes cluster, weir in a pod from its own image and manifests, and real
// clients: kubectl, the HorizontalPodAutoscaler's controller, Prometheus. Next
// to it runs metrics-server, the peer that every time and number is compared with.
//
// What is said of a container is judged by what the kernel counts of its cgroup
// (TestSurvivingDuplicate), and a reason by what was done (TestEveryAbsenceHasItsCause).
//
// Tests that take minutes and mostly wait run side by side, after the others. Those
// that ask the API server for metrics.k8s.io say of whom it is to ask it, and wait for
// each other (resourceMetricsFrom).
//
// What an autoscaler wrote, and what it did not, is read in the API server's audit log.
//
// The tests need root and the build tag e2e; make e2e runs them. The variable
// WEIR_E2E_CLUSTER names a cluster that is up already (go run ./test/cluster up)
// and is left up.
package apis
