// Package kubeletapi serves the endpoints of a kubelet: /metrics/resource, /stats/summary and
// /metrics/cadvisor, with the names and units of Kubernetes 1.37. A scraper of kubelets (a weir
// server, Prometheus, metrics-server) can scrape the agent of a node if the kubelet cannot be
// reached or is too slow: weir server
// --source='kubelet:https://:10290?endpoint=summary&insecure-tls=true' reads agents, which sign
// their own certificates by default.
//
// # What is served
//
// Newest, a sink of the pipeline, keeps the node's newest round. Counters are served as the node
// has them, each with the time of its read, also before a rate is known: the reader computes its
// own rates. Not served are samples that identity rejected, values that the node could not read,
// and repeated last known values. Pods and containers without a known name are served only in
// /metrics/cadvisor, which has their path.
//
// A summary has the round, and what Options.Base reads for each request. All numbers with the same
// timestamp are of one moment. CPU, network, swap and totals of pressure come from the round.
// Memory comes from Base if that has page faults, otherwise from the round. Averages of pressure,
// file systems, volumes and the disk usage of pods come from Base. A pod's memory is that of its
// cgroup on every path, which includes the sandbox and memory-backed volumes.
//
// # What a kubelet serves and this package does not
//
// /metrics/resource is complete. Package test/differences lists what differs in /stats/summary.
//
// /metrics/cadvisor is read for the request, through cAdvisor's own library and with its own
// collectors for Prometheus, so names, labels and help are a kubelet's. test/differences lists
// what differs. Sandboxes are listed if the runtime names them. The label image is empty if neither
// the runtime nor Options.Image knows it. All values of a cgroup have the time of its CPU counter.
//
// # Files
//
//   - handler.go: the paths and what they need; rights.go: who may read them.
//   - newest.go: the sink that keeps the newest round; tree.go: the round as node, pods, containers.
//   - resource.go: /metrics/resource.
//   - summary.go, overlay.go: /stats/summary, a round over what Options.Base reads.
//   - cadvisor.go: /metrics/cadvisor.
package kubeletapi
