// Package apis tests weir's metrics APIs as a cluster uses them: in a real
// Kubernetes cluster, with weir in a pod from its own image and manifests, and
// with real clients (kubectl, the HorizontalPodAutoscaler's controller,
// Prometheus). metrics-server runs next to weir, and every time and number is
// compared with it.
//
// A container's numbers are compared with what the kernel counts in its cgroup
// (TestSurvivingDuplicate), and a reason with the cause that was injected
// (TestEveryAbsenceHasItsCause).
//
// Tests that take minutes and mostly wait run in parallel, after the others.
// Those that read metrics.k8s.io through the API server say which server must
// serve it, and wait for each other (resourceMetricsFrom).
//
// The API server's audit log shows what an autoscaler wrote, and what it did
// not.
//
// The tests need root and the build tag e2e; make e2e runs them. The variable
// WEIR_E2E_CLUSTER names a cluster that already runs (go run ./test/cluster
// up). The tests do not stop that cluster.
package apis
