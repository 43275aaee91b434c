// Package resize finds requests that fit what is used, and says which of them can be
// changed in place, without a restart.
//
// It is pure: a pod and what its containers used go in, a Recommendation comes out.
//
//	p := resize.FromPod(pod)                       // or FromFacts
//	r := resize.Recommend(p, use, resize.Defaults())
//
// A proposal is the quantile of what was used, and headroom: by default the 95th
// percentile of CPU and 15%, the highest working set and 20%. CPU that is short slows a
// container down, memory that is short ends it, so they are not aimed at alike. By
// default requests only shrink.
//
// Whatever is not proposed has a Reason. What Kubernetes refuses, or what it does not do
// in place, is refused here first and in words: a change of the pod's QoS class (the
// kubelet would have to move its cgroup, and may leave one behind under the old class),
// resources whose resizePolicy restarts the container, static and Windows pods. Check
// holds any change, also one that nobody recommended, to the same rules.
//
// Package resize/apply carries a change out. Package resize/promusage reads what
// was used over days.
package resize
