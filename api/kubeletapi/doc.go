// Package kubeletapi serves the endpoints of a kubelet: /metrics/resource, /stats/summary
// and /metrics/cadvisor, with the names and units of Kubernetes 1.36. A scraper of kubelets
// (a weir server, Prometheus, metrics-server) can scrape the agent of a node if the kubelet
// cannot be reached or is too slow: weir server
// --source='kubelet:https://:10290?endpoint=summary&insecure-tls=true' reads agents, whose
// certificates are their own unless they are given others.
//
// # What is served
//
// Newest, a sink of the pipeline, keeps the node's newest round. Counters are served as the
// node has them, each with the time it was read, also before a rate is known: the reader
// computes its own. Samples that identity rejected, values that the node could not read and
// repeated last known values are left out. So are pods and containers without a known name,
// except in /metrics/cadvisor, which has their path.
//
// A summary has the round, and what Options.Base reads for each request. All numbers of one time
// stamp are of one moment: CPU, network, swap and totals of pressure are the round's;
// memory is Base's if that has page faults as well, and else the round's; averages
// of pressure, file systems, volumes and what a pod keeps on disk are Base's.
//
// # What a kubelet serves and this does not
//
// In /metrics/resource nothing is missing. In /stats/summary, of the system
// containers there is "pods" alone, and what Base does not read is absent.
//
// In /metrics/cadvisor are the families that weir's catalogue has numbers for. These are
// not: CFS bursts, kernel, active and inactive file memory and its peak, reservations and
// swap limits, packets, the times and counts of block I/O, file systems of containers,
// sockets, ulimits, states of tasks and health, CPU shares, and of the machine its
// topology, NVM and version. An image is told where Options.Image knows it. A pod's
// network is under the pod's own cgroup, since sandboxes, of whose own numbers a pod's
// cgroup is the sum, are not listed; page faults are those of a cgroup with all
// below it (scope="hierarchy"). A CPU limit is told for a period of 100 ms, whatever the
// kernel's period. The times of the machine's families and of starts are left out, as
// kubelets do.
package kubeletapi
