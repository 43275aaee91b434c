// Package kubeletapi serves what a kubelet serves: /metrics/resource, /stats/summary and
// /metrics/cadvisor, in the words and units of Kubernetes 1.36. So whoever scrapes
// kubelets (a weir server, Prometheus, metrics-server) can scrape a node's agent where
// the kubelet cannot be reached or is too slow: weir server
// --source='kubelet:https://:10290?endpoint=summary&insecure-tls=true' reads agents, whose
// certificates are their own unless they are given others.
//
// # What is told
//
// Newest, a sink of the pipeline, keeps the node's newest round. Counters go out as the
// node has them, each with the time it was read, whether or not a rate could be made of
// them yet: the reader makes its own. What identity turned away, what the node could not
// read and what only stands in for a missed reading is left out. So is a pod or container
// of which nobody knows the name, except in /metrics/cadvisor, where its path tells it.
//
// A summary has beside the round what Options.Base read anew. All numbers of one time
// stamp are of one moment: CPU, network, swap and totals of pressure are the round's;
// memory is Base's if that has page faults as well, and else the round's; averages
// of pressure, file systems, volumes and what a pod keeps on disk are Base's.
//
// # What a kubelet tells and this does not
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
