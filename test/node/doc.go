// Package node tests weir's agent on a real node: a separate Kubernetes
// cluster, with a separate disk for its node. A pod takes memory, disk and
// inodes until the node is short of them. The tests watch from outside which
// pod is evicted, by what and how soon: pods and the node through the API
// server, the root cgroup and the file system several hundred times a second,
// and the audit log.
//
// Each shortage happens twice: first with weir in mode kill and its thresholds
// above the kubelet's, then with weir in mode observe, where the kubelet
// evicts. The same pod must be evicted, and weir must have named it. Between the
// two, weir in mode evict must take that pod when memory is short.
//
// The cluster is not shared with other tests: their pods would be evicted, and
// their usage would change the results. For the same reason, no two tests of
// this package run at the same time.
//
// With -node=v2 the node is a virtual machine with cgroup version 2. TestFrozen,
// TestLatency and TestPackages need one. TestAgentScraped and
// TestAgentWithoutAPIServer start processes beside the kubelet, and TestDevices
// serves its plugins on this machine, so they are skipped there.
//
// The tests need root and the build tag e2e. make e2e runs all that need no
// virtual machine and, in one, those of E2E_V2 in the Makefile; make nightly runs
// all in one, and some with a newer kernel.
package node
