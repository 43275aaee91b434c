// Package inspect finds the cgroups of pods on this machine and judges each:
// whose it is, whether it is where it should be, and whether anything keeps it.
// The kubelet removes the cgroup of a pod only after the pod was deleted; a
// process that cannot be killed, or a kubelet that was restarted at a bad
// moment, leaves it behind, and the kubelet then reports one pod twice.
//
// It works in three steps that do not know of each other:
//
//	i, err := inspect.New(inspect.Options{})
//	tree, err := i.Read()                    // what the kernel has, in every hierarchy
//	report := inspect.Judge(tree, pods, now) // pure: tree and pods to judgements
//	removals := i.Clean(report)              // the only one that changes anything
//
// Pods is what a kubelet or an API server said of this node's pods, asked for
// after the tree was read; nil where there is nobody to ask. README.md lists the
// judgements and the conditions under which Clean removes a cgroup.
package inspect
