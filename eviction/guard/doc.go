// Package guard joins the parts of eviction on one node: a notice of the kernel leads to
// one fresh read, one decision, and what comes of it.
//
//	g, err := guard.New(guard.Options{Read: ..., Settings: ..., Executor: ...})
//	go g.Run(ctx)
//	... g.Last() is how things stand, g.Acts() what was done of late ...
//
// One goroutine decides and acts, so that while a pod leaves nobody else is chosen, as with
// the kubelet; but the wait for a pod that a soft threshold gave its time ends once a hard one is to
// be acted on. Others may ask for Last all the while: a round is shown once it has decided, and
// again once what it decided is done.
//
// Besides notices there are rounds at times known beforehand: when a grace period is over,
// when a limit lets the next pod go, and at least every 10 s (notify.Options.MaxInterval). Of disks
// and process ids the kernel gives no notice: they are looked at every second (Options.Poll), and a
// threshold that comes to be met, or ends, gives notice as well.
//
// What cannot be read leads to a round that says so. Without a summary nothing is decided;
// without pods nobody is evicted; conditions and grace periods last.
//
// A pod that a PodDisruptionBudget holds is asked again later, each time after a longer
// while. In between it is passed over and the next of the ranking goes: a node that runs
// out of something is in a hurry, and the kubelet would have taken both. The same holds for a
// pod that the API server refuses to let go, for one that was told to end, by whomever, and has
// not when it was waited for in vain, and for one that is not what the list of pods says: gone, or
// critical by now. Hard thresholds of mode kill go another way, so what a soft one was told counts
// for nothing there. That the API server does not answer is no reason to take another pod.
package guard
