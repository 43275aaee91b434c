// Package resize recommends requests that fit the usage, and shows which requests can be changed in
// place, without a restart.
//
// The package is pure: it computes a PodRecommendation from a pod and the usage of its containers.
//
//	p := resize.FromPod(pod)                       // or FromFacts
//	r := resize.Recommend(p, use, resize.Defaults())
//
// A proposal is a quantile of the usage plus headroom. The default for CPU is the 95th percentile
// plus 15%; the default for memory is the highest working set plus 20%. They differ because a
// container with too little CPU is slow, but a container with too little memory is killed. By
// default requests only shrink.
//
// Each request without a proposal has a Reason. The package refuses what Kubernetes refuses or does
// not do in place, with an explanation. It refuses a change of the pod's QoS class, because the
// kubelet would have to move the pod's cgroup and could leave one under the old class. It also
// refuses resources with a resizePolicy that requires a restart, static pods and Windows pods.
// Check applies the same rules to any change.
//
// Package resize/apply makes a change. Package resize/promusage reads the usage of several days
// from a Prometheus. Package resize/estimate has the estimators of other tools,
// and package resize/replay scores them on a trace.
//
// Files: recommend.go has Recommend, usage.go what it reads from readings: seasons and risks, and workload.go RecommendWorkload; pair.go has the Pairs of requests
// and targets of HPAs, and load.go what an HPA would have read; check.go has ResourceChange and Check; pod.go has
// PodResources, its QoS class and what the scheduler reserves; reason.go has the reasons;
// options.go has the options; reserved.go has Reserve, which proposes what kubelets should reserve outside pods.
package resize
