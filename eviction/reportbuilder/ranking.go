package reportbuilder

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/evictionreport"
)

// newRanking returns the order of eviction for a threshold. It is nil if no pod is evicted for the
// signal.
func newRanking(t *eviction.Threshold, in *eviction.Input, d *eviction.Decision) *evictionreport.Ranking {
	s := t.Signal
	if s.Condition() == eviction.NodeIOPressure {
		return nil
	}
	list := in.Rank(t, d.Layout)
	r := &evictionreport.Ranking{Unit: rankingUnit(s), Pods: make([]evictionreport.RankedPod, len(list))}
	for i := range list {
		r.Pods[i] = newRankedPod(r.Unit, &list[i])
	}
	next := slices.IndexFunc(list, func(p eviction.RankedPod) bool { return p.Skipped == eviction.NotSkipped })
	switch {
	case len(list) == 0:
		r.Message = "there is no pod to evict"
		return r
	case next < 0 && len(list) == 1:
		r.Message = "no pod can be evicted: the only pod is skipped"
		return r
	case next < 0:
		r.Message = fmt.Sprintf("no pod can be evicted: all %d pods are skipped", len(list))
		return r
	}
	r.Next = list[next].Pod.String()
	second := slices.IndexFunc(list[next+1:], func(p eviction.RankedPod) bool { return p.Skipped == eviction.NotSkipped })
	if second < 0 {
		r.Message = r.Next + ", the only pod that can be evicted"
		return r
	}
	a, b := &list[next], &list[next+1+second]
	// There may be skipped pods between these two, and BeforeNextBy compares neighbours. So the two
	// are ranked alone.
	two := *in
	two.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(pod *corev1.Pod) bool {
		return string(pod.UID) != a.Pod.UID && string(pod.UID) != b.Pod.UID
	})
	pair := two.Rank(t, d.Layout)
	r.Message = fmt.Sprintf("%s, before %s: %s", r.Next, b.Pod, rankReason(r.Unit, &pair[0], &pair[1]))
	return r
}

// newRankedPod returns the description of a pod of the ranking.
func newRankedPod(unit evictionreport.Unit, p *eviction.RankedPod) evictionreport.RankedPod {
	ranked := evictionreport.RankedPod{
		Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.Pod.UID, OverRequest: p.Over, Priority: p.Priority, BeforeNextBy: string(p.BeforeNextBy),
		Skipped: string(p.Skipped), Message: cmp.Or(p.SkipMessage, p.Doubt), // with parity a pod with a doubt is evicted nevertheless
	}
	switch {
	case p.NoStats, p.Doubt != "" && p.Usage.IsZero():
		ranked.OverRequest = false // the kubelet counts a missing figure as zero
	case unit == evictionreport.Processes:
		ranked.Usage = floatOfQuantity(&p.Usage)
	default:
		ranked.Usage, ranked.Request, ranked.Excess = floatOfQuantity(&p.Usage), floatOfQuantity(&p.Request), floatOfQuantity(&p.Excess)
	}
	return ranked
}

// rankReason shows which key puts a before b.
func rankReason(u evictionreport.Unit, a, b *eviction.RankedPod) string {
	words := func(q *resource.Quantity) string { return u.FormatWithNoun(q.AsApproximateFloat64()) }
	switch a.BeforeNextBy {
	case eviction.KeyNoStats:
		return "it has no statistics"
	case eviction.KeyOver:
		return fmt.Sprintf("it uses more than it requests (%s, requests %s), and %s does not (%s, requests %s)",
			words(&a.Usage), words(&a.Request), b.Pod.Name, words(&b.Usage), words(&b.Request))
	case eviction.KeyPriority:
		return fmt.Sprintf("its priority is lower (%d, and %s has %d)", a.Priority, b.Pod.Name, b.Priority)
	case eviction.KeyExcess:
		if u == evictionreport.Inodes {
			return fmt.Sprintf("of inodes in use less bytes of storage requested, as the kubelet counts, it has more (%s, %s has %s)",
				u.Format(a.Excess.AsApproximateFloat64()), b.Pod.Name, u.Format(b.Excess.AsApproximateFloat64()))
		}
		if !a.Over {
			below := func(q resource.Quantity) string { q.Neg(); return words(&q) }
			return fmt.Sprintf("it is closer to its request: %s (%s, requests %s), and %s %s (%s, requests %s)",
				below(a.Excess), words(&a.Usage), words(&a.Request), b.Pod.Name, below(b.Excess), words(&b.Usage), words(&b.Request))
		}
		return fmt.Sprintf("it uses more beyond its request: %s (%s, requests %s), and %s %s (%s, requests %s)",
			words(&a.Excess), words(&a.Usage), words(&a.Request), b.Pod.Name, words(&b.Excess), words(&b.Usage), words(&b.Request))
	case eviction.KeyProcesses:
		return fmt.Sprintf("it has more processes (%s, %s has %s)", u.Format(a.Usage.AsApproximateFloat64()), b.Pod.Name, u.Format(b.Usage.AsApproximateFloat64()))
	}
	return "all other keys are equal, so the name decides (the kubelet takes either)"
}
