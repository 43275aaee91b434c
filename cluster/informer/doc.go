// Package informer turns the nodes and pods of the API server into immutable cluster.Facts. It is
// the only user of client-go's lists and watches for them: no Kubernetes type leaves this package,
// except the pods of the one node that an agent watches (NodePods).
//
// Every object is converted when it arrives and then dropped. So weir keeps one small copy of a
// pod, without the large one of an informer:
//
//	API server ─▶ reflector ─▶ convert ─▶ queue ─▶ loop ─▶ *cluster.Facts
//	              (nodes, pods)           coalesces  every   read without a lock
//	                                                 50 ms
//
// Cluster owns all goroutines; convert.go is pure. While the API server cannot be reached, the last
// facts stay, and Facts.At does not change. It is the time of what is known of pods; nodes do not
// change it.
//
//	cluster.go     Cluster: options, goroutines, the loop that publishes facts
//	watch.go       the reflectors; store.go what they write into; queue.go changes that wait
//	convert.go     a node or pod of the API server → facts; pool.go what facts share
//	lists.go       facts of lists, without a watch
//	nodepods.go    whole pods of the one node that an agent watches
//	kubeletpods.go, kubeletdevices.go  what the kubelet reports through its sockets
package informer
