// Package node tests weir's agent on a real node: a Kubernetes cluster of its own,
// whose node has a disk of its own, runs short of memory, disk and inodes because a
// pod takes them. Who is evicted, by whom and how soon is watched from outside: in
// pods and the node through the API server, in the root cgroup and the file system
// several hundred times a second, and in the audit log.
//
// Each shortage comes twice: with weir in mode kill and its thresholds above the
// kubelet's, then with weir in mode observe, when the kubelet has to do it. The same
// pod must go, and weir must have named it.
//
// The cluster is not shared with other tests: their pods would be evicted, and their
// use would come between. For the same reason no two tests here run side by side.
//
// The tests need root and the build tag e2e; make e2e runs them.
package node
