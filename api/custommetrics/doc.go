// Package custommetrics serves custom.metrics.k8s.io: every metric of the catalogue that pods,
// nodes and namespaces have, to the HorizontalPodAutoscaler and other clients. The library
// sigs.k8s.io/custom-metrics-apiserver implements the protocol, in the versions v1beta2 and
// v1beta1. Provider gives the answers.
//
// # Names
//
// The name of a metric is its Prometheus name in the catalogue (docs/metrics.md), in base units,
// without the prefix, because the path already has it: "network_receive_bytes_per_second",
// "cpu_usage_cores", "memory_working_set_bytes". For example
//
//	weir_pod_network_receive_bytes_per_second{namespace="shop",pod="web-0"}
//
// of /metrics/cluster is
//
//	/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/web-0/network_receive_bytes_per_second
//
// Counters are served and listed too, with names that end in "_total"; an autoscaler needs the rate
// instead. GET /apis/custom.metrics.k8s.io/v1beta2 lists all metrics of the catalogue, also those
// that the configured sources do not report.
//
// # Objects
//
//	namespaces/NS/pods/NAME/METRIC     a pod; NAME may be *, with a labelSelector
//	pods/*/METRIC                      the pods of all namespaces
//	nodes/NAME/METRIC                  a node; NAME may be *
//	namespaces/NS/metrics/METRIC       a namespace: the sum of its pods
//
// An HPA is in a namespace and a node is not, so an HPA cannot refer to a node.
//
// Rules (package externalmetrics) define further metrics, of these and of other objects. Where a rule
// has the name of a metric of the catalogue, for the same resource, the rule answers. A rule over time is a
// function of a metric's values in the memory of the last minutes; its window is that of the rule.
//
// # Metric selectors
//
// Without a metric selector the value is that of the whole object. The labels below choose parts of
// it. If a selector chooses several parts, the value is their sum, or for ratios their mean, and
// its time is that of the oldest part.
//
//	container             a pod's containers
//	interface             of network metrics
//	device, volume        of file systems; device also of disk metrics
//	accelerator           of accelerator metrics
//
// A label value cannot contain slashes. In the name of a device they are written as dashes, without
// the first one: /dev/vda1 is dev-vda1. A selector with another label is refused, because no part
// has that label.
//
// # Values
//
// Nanocores and nanoseconds are given exactly, as cores and seconds; bytes and counts as whole
// numbers; ratios to the nearest millionth, and everything else to the nearest thousandth, because
// HPAs ignore smaller differences. The timestamp and the window are those of the measurement. The
// window is 0 if the metric is not a rate, and absent if the node reported a rate without its
// window.
//
// # Files
//
//   - provider.go: the protocol library's interface; request.go: what a request asks for.
//   - rules.go: the metrics that rules define; objects.go: their objects other than pods and nodes.
//   - overtime.go: functions of the values in a window.
//   - reading.go: the numbers; parts.go: those of devices, volumes and interfaces.
//   - missing.go: why a number is missing.
package custommetrics
