// Package clustermetrics serves /metrics/cluster: the metrics of every entity, in OpenMetrics' or
// Prometheus' text format, as weir_<kind>_<name> in base units, with the labels node, namespace, pod,
// container and cgroup where they apply. Without options it shows the metrics that most people use
// (series.Default). With names=kubernetes the series have the names and labels of cAdvisor and
// kube-state-metrics.
//
//	handler.go     requests, filters
//	options.go     options of the sink and of a request
//	exposition.go  the numbers of a snapshot as families
//	facts.go       families of what the API server knows
//	kubernetes.go  names and labels of cAdvisor and kube-state-metrics
//	verdicts.go    weir_verdicts
//
// It is an API, not a sink: it receives no batches and reads the latest snapshot of sinks/memory.
// The next scrape therefore has no series of entities that are gone, and a number that no other API
// serves is not served here. For historical reasons its options are given with --sink=prometheus.
//
// Interfaces, devices, volumes and accelerators have their own families, for example
// weir_node_interface_network_receive_bytes_total{interface="eth0"}. If they shared a family with
// the node's own value, a sum() would count twice.
package clustermetrics
