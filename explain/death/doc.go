// Package death answers why a container or a pod ended: which limit, who stopped it, or its own exit, with
// what shows that and how sure it is. It is pure: an end, as package endlog has it, and Events go in; data
// with finished sentences comes out.
//
//	cause.go     the closed list of causes, each with its sentence and advice
//	types.go     Death and Report, which are JSON too
//	decide.go    Decide: rules in their order, and what they share
//	reported.go  what the words mean that a kubelet, a controller or a runtime reports about an end
//	pod.go       rules about pods that were stopped as a whole
//	container.go rules about one run of a container
//	kernel.go    which limit, if the agent of the node read the kernel's counters
//	memory.go    which limit, if nobody read them
//	evicted.go   the kubelet's message about an eviction, as fields
//	before.go    what was used in the minutes before
//	report.go    all ends of a namespace or a pod
//
// README.md has what decides each cause, and what cannot be known.
package death
