// Package kubeletapi serves the endpoints of a kubelet: /metrics/resource, /stats/summary and
// /metrics/cadvisor, with the names and units of Kubernetes 1.36. A scraper of kubelets (a weir
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
// /metrics/resource is complete. /stats/summary has only the system container "pods", and lacks
// what Base does not read.
//
// /metrics/cadvisor has the families for which weir's catalogue has numbers. It lacks CFS bursts,
// kernel, active and inactive file memory and its peak, reservations and swap limits, packets, the
// times and counts of block I/O, file systems of containers, sockets, ulimits, states of tasks and
// health, CPU shares, and the machine's topology, NVM and version. The label image is empty if
// Options.Image does not know it. A pod's network has the path of the pod's cgroup, because
// sandboxes are not listed. Page faults are those of a cgroup and everything below it
// (scope="hierarchy"). A CPU limit has a period of 100 ms, also if the kernel uses another. The
// families of the machine and the start times have no timestamp, as in kubelets.
package kubeletapi
