// Package custommetrics serves custom.metrics.k8s.io: every metric of the
// catalogue that pods, nodes and namespaces have, to the HorizontalPodAutoscaler
// and other clients. The library sigs.k8s.io/custom-metrics-apiserver implements
// the protocol, in the versions v1beta2 and v1beta1; a Provider answers.
//
// # Names
//
// A metric goes by its Prometheus name in the catalogue (docs/metrics.md), which
// is in base units, without the prefix, which the path has already:
// "network_receive_bytes_per_second", "cpu_usage_cores",
// "memory_working_set_bytes". So
//
//	weir_pod_network_receive_bytes_per_second{namespace="shop",pod="web-0"}
//
// of /metrics/cluster is
//
//	/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/web-0/network_receive_bytes_per_second
//
// Counters are served and listed too, under names that end in "_total"; an
// autoscaler wants the rate beside them. GET /apis/custom.metrics.k8s.io/v1beta2
// lists what the catalogue has, whether or not the configured sources supply it.
//
// # Objects
//
//	namespaces/NS/pods/NAME/METRIC     a pod; NAME may be *, with a labelSelector
//	pods/*/METRIC                      the pods of all namespaces
//	nodes/NAME/METRIC                  a node; NAME may be *
//	namespaces/NS/metrics/METRIC       a namespace: the sum of its pods
//
// A node is in no namespace, so an HPA, which is in one, cannot refer to one.
//
// # Metric selectors
//
// Without a metric selector a value is that of the whole object. The labels below
// choose parts of it. Where several parts are chosen the value is their sum, or
// for ratios their mean, as old as the oldest.
//
//	container             a pod's containers
//	interface             of network metrics
//	device, volume        of file systems; device also of disk metrics
//	accelerator           of accelerator metrics
//
// A device's slashes, which a label value cannot hold, are written as dashes, the
// first left out: /dev/vda1 is dev-vda1. A selector with another label
// is refused, for it would choose by something that is not there.
//
// # Values
//
// Nanocores and nanoseconds are given exactly, as cores and seconds; bytes and
// counts as whole numbers; ratios to the nearest millionth and all else to the
// nearest thousandth, beyond which HPAs do not look. The timestamp and the window
// are those of the measurement; the window is 0 for what is not a rate, and absent
// where the node gave a rate without saying over what.
package custommetrics
