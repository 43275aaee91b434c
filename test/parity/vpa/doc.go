// Package vpa compares weir's estimator VPA (resize/estimate) with the recommender of Kubernetes'
// Vertical Pod Autoscaler 1.8.1, its packages unchanged, on random histories of a workload: samples,
// OOM kills, pods that come and go, gaps, and samples out of order. Configuration, policy of the
// VerticalPodAutoscaler and feature gates vary from case to case. The targets are compared in millicores
// and bytes, above upstream's floor, which weir leaves out; any difference fails.
//
//	go test -C test/parity/vpa                      # 6,000 histories, some seconds
//	go test -C test/parity/vpa -v -cases 100000     # as for a release; -v prints how often each branch was met
//	go test -C test/parity/vpa -seed 7              # other histories
//
// It is a module of its own, so that test/parity builds Kubernetes with the versions of Kubernetes.
//
// Upstream's configuration of the histograms belongs to the process, and so do its feature gates.
// Cases therefore run one at a time.
//
// All pods of a history have the same labels. Upstream has a histogram for each set of labels and adds
// them up in the random order of a map, so its own result can differ in the last bit of a sum. Not
// compared are also checkpoints (they round), the expiry of a workload without samples (it uses the
// process's clock), and processors other than amd64, where the compiler may fuse a multiplication with
// an addition.
package vpa
