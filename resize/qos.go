package resize

// Class is a pod's quality-of-service class, as Kubernetes spells it. The kubelet keeps
// a pod's cgroup below that of its class.
type Class string

// The classes.
const (
	Guaranteed Class = "Guaranteed"
	Burstable  Class = "Burstable"
	BestEffort Class = "BestEffort"
)

// ClassOf returns the class that p's requests and limits make, as the API server reckons
// it (k8s.io/kubernetes/pkg/apis/core/v1/helper/qos): requests and limits of all
// containers are added up, zero counts as nothing asked for, and Guaranteed is the pod in
// which every container has both limits and the sums are equal. Requests and limits of the
// pod itself, where there are any, stand for all.
func ClassOf(p *Pod) Class {
	var requests, limits Amounts
	guaranteed := true
	add := func(of []Container) {
		for i := range of {
			plus(&requests, &of[i].Requests)
			plus(&limits, &of[i].Limits)
			guaranteed = guaranteed && above(of[i].Limits.CPU) && above(of[i].Limits.Memory)
		}
	}
	if p.PodLevel.Set {
		add([]Container{{Requests: p.PodLevel.Requests, Limits: p.PodLevel.Limits}})
	} else {
		add(p.Containers)
	}
	switch {
	case requests == Amounts{} && limits == Amounts{}:
		return BestEffort
	case guaranteed && requests == limits:
		return Guaranteed
	}
	return Burstable
}

func above(a Amount) bool { return a.Set && a.Value > 0 }

func plus(sum, a *Amounts) {
	for _, r := range Resources() {
		if v := a.Get(r); above(v) {
			*sum.of(r) = Of(sum.Get(r).Value + v.Value)
		}
	}
}

// class returns the class that Kubernetes holds the pod to.
func (p *Pod) class() Class {
	if p.QoS != "" {
		return p.QoS
	}
	return ClassOf(p)
}
