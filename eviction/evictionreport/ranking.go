package evictionreport

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport/document"
)

// ranking tells who would go for a threshold; nil if nobody is evicted for its signal.
func ranking(t *eviction.Threshold, in *eviction.Input, d *eviction.Decision) *document.Ranking {
	s := t.Signal
	if s.Condition() == eviction.NodeIOPressure {
		return nil
	}
	list := in.Rank(t, d.Layout)
	pods := make(map[string]*corev1.Pod, len(in.Pods))
	for _, pod := range in.Pods {
		pods[string(pod.UID)] = pod
	}
	r := &document.Ranking{Unit: counts(s), Pods: make([]document.Pod, len(list))}
	for i := range list {
		r.Pods[i] = ranked(r.Unit, &list[i], pods[list[i].Pod.UID])
	}
	next := slices.IndexFunc(list, func(p eviction.Ranked) bool { return p.Passed == eviction.NotPassed })
	switch {
	case len(list) == 0:
		r.Message = "there is no pod to evict"
		return r
	case next < 0 && len(list) == 1:
		r.Message = "nobody may go: the only pod is passed over"
		return r
	case next < 0:
		r.Message = fmt.Sprintf("nobody may go: all %d pods are passed over", len(list))
		return r
	}
	r.Next = list[next].Pod.String()
	second := slices.IndexFunc(list[next+1:], func(p eviction.Ranked) bool { return p.Passed == eviction.NotPassed })
	if second < 0 {
		r.Message = r.Next + ", the only pod that may go"
		return r
	}
	a, b := &list[next], &list[next+1+second]
	// Others may stand between them, who are passed over: what parts these two is what
	// does where there are no others.
	two := *in
	two.Pods = []*corev1.Pod{pods[a.Pod.UID], pods[b.Pod.UID]}
	pair := two.Rank(t, d.Layout)
	r.Message = fmt.Sprintf("%s, before %s: %s", r.Next, b.Pod, because(r.Unit, &pair[0], &pair[1]))
	return r
}

// ranked tells a pod's place.
func ranked(unit document.Unit, p *eviction.Ranked, pod *corev1.Pod) document.Pod {
	told := document.Pod{
		Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.Pod.UID, Over: p.Over, Priority: p.Priority, Before: p.Before.String(),
	}
	switch {
	case p.NoStats, p.Doubt != "" && p.Usage.IsZero():
		told.Over = false // the kubelet takes what is missing for zero
	case unit == document.Processes:
		told.Usage = quantity(&p.Usage)
	default:
		told.Usage, told.Request, told.Excess = quantity(&p.Usage), quantity(&p.Request), quantity(&p.Excess)
	}
	if p.Passed != eviction.NotPassed {
		told.Passed = p.Passed.String()
		told.Why = passed(p, pod)
	} else {
		told.Why = p.Doubt // with parity it goes all the same
	}
	return told
}

// Why pods are passed over that the kubelet would take.
const (
	itself  = "it is weir's own pod"
	blocked = "it was asked to go and cannot: "
)

// passed says why a pod is passed over.
func passed(p *eviction.Ranked, pod *corev1.Pod) string {
	switch p.Passed {
	case eviction.PassDoubt:
		return p.Doubt
	case eviction.PassCritical:
		return critical(eviction.CriticalOf(pod))
	case eviction.PassSelf:
		return itself
	case eviction.PassBlocked:
		return blocked + p.Blocked
	}
	return p.Passed.String()
}

// critical says why a pod is never evicted.
func critical(c eviction.Critical) string {
	switch c {
	case eviction.StaticPod:
		return "it is a static pod, which nobody would bring back"
	case eviction.MirrorPod:
		return "it is the image of a static pod, which nobody would bring back"
	case eviction.CriticalPriority:
		return "its priority is that of the system's classes, or above"
	}
	return ""
}

// because says what puts a before b.
func because(u document.Unit, a, b *eviction.Ranked) string {
	words := func(q *resource.Quantity) string { return u.Noun(q.AsApproximateFloat64()) }
	switch a.Before {
	case eviction.KeyNoStats:
		return "it has no statistics"
	case eviction.KeyOver:
		return fmt.Sprintf("it uses more than it requests (%s, requests %s), and %s does not (%s, requests %s)",
			words(&a.Usage), words(&a.Request), b.Pod.Name, words(&b.Usage), words(&b.Request))
	case eviction.KeyPriority:
		return fmt.Sprintf("its priority is lower (%d, and %s has %d)", a.Priority, b.Pod.Name, b.Priority)
	case eviction.KeyExcess:
		if u == document.Inodes {
			return fmt.Sprintf("of inodes in use less bytes of storage requested, as the kubelet counts, it has more (%s, %s has %s)",
				u.Words(a.Excess.AsApproximateFloat64()), b.Pod.Name, u.Words(b.Excess.AsApproximateFloat64()))
		}
		if !a.Over {
			below := func(q resource.Quantity) string { q.Neg(); return words(&q) }
			return fmt.Sprintf("it is less below its request: %s (%s, requests %s), and %s %s (%s, requests %s)",
				below(a.Excess), words(&a.Usage), words(&a.Request), b.Pod.Name, below(b.Excess), words(&b.Usage), words(&b.Request))
		}
		return fmt.Sprintf("it uses more beyond its request: %s (%s, requests %s), and %s %s (%s, requests %s)",
			words(&a.Excess), words(&a.Usage), words(&a.Request), b.Pod.Name, words(&b.Excess), words(&b.Usage), words(&b.Request))
	case eviction.KeyProcesses:
		return fmt.Sprintf("it has more processes (%s, %s has %s)", u.Words(a.Usage.AsApproximateFloat64()), b.Pod.Name, u.Words(b.Usage.AsApproximateFloat64()))
	}
	return "nothing tells the two apart but their names, and the kubelet takes either"
}
