// Package resize recommends requests that fit the usage, and says which requests can be changed in
// place, without a restart.
//
// The package is pure: it computes a PodRecommendation from a pod and the usage of its containers.
//
//	p := resize.FromPod(pod)                       // or FromFacts
//	r := resize.Recommend(p, use, resize.Defaults())
//
// A proposal is a quantile of the usage plus headroom. The default is the 95th percentile plus 15%
// for CPU, and the highest working set plus 20% for memory. The aims differ because a container with
// too little CPU is slow, and a container with too little memory is killed. By default requests only
// shrink.
//
// A request without a proposal has a Reason. The package refuses what Kubernetes refuses or does not
// do in place, with an explanation: a change of the pod's QoS class (the kubelet would have to move
// the pod's cgroup, and may leave one behind under the old class), resources whose resizePolicy
// requires a restart, static pods and Windows pods. Check applies the same rules to any change.
//
// Package resize/apply carries a change out. Package resize/promusage reads the usage of days from a
// Prometheus.
//
// Files: recommend.go has Recommend; check.go has ResourceChange and Check; pod.go has Pod, its QoS class and
// what the scheduler reserves; reason.go the reasons; options.go the options.
package resize
