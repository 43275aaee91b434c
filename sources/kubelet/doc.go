// Package kubelet reads samples from kubelets: for each node one endpoint
// (/metrics/resource, /stats/summary, /metrics/cadvisor, or the old
// /stats/container/), over one connection that is kept from read to read.
//
// A Scraper holds what is shared: the transport (package fetch), credentials that
// follow their files, buffers, the bound on concurrent reads. Targets says which
// nodes there are to read, Open gives a Node that reads one of them. A broken node
// costs only itself: every error is a *metric.ReadError whose Reason is the verdict
// for what is missing.
//
// The formats are parsed in sub-packages, which do no I/O. Package kubelet
// judges no number: two lines of one name, zeros for what the kubelet could not
// read, and counters that fall are passed on for the processors to judge. It does
// check that the node that answers is the one that was asked.
package kubelet
