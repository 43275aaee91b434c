package live

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resourceusage"
)

// used is what metrics.k8s.io serves of some pods, in their order.
type used struct {
	pods []podUse // those that are served
	uses []resourceusage.Usage
	err  error // why nothing can be said
}

// podUse is one of them.
type podUse struct {
	name string
	over metric.Window
	// from and to are where its containers' lie in uses.
	from, to int
}

// at returns the pod's timestamp as the API encodes it: in whole seconds.
func (p *podUse) at() time.Time { return time.Unix(p.over.End/int64(time.Second), 0) }

// usedNow returns what view says of pods.
func usedNow(view View, facts *cluster.Facts, pods []metric.PodRef) *used {
	u := &used{pods: make([]podUse, 0, len(pods)), uses: make([]resourceusage.Usage, 0, 2*len(pods))}
	last, whole := -1, false // the pod that is being told of, and whether it is served
	view.EachOfPods(pods, func(i int, s *metric.Sample) bool {
		if i != last {
			u.finish()
			// A pod's own sample comes before its containers', or is not there.
			last, whole = i, s.Entity.Kind == metric.Pod && resourceusage.MayServe(facts.Pod(pods[i]), s)
			if whole {
				u.begin(string(pods[i].Name))
			}
		}
		if whole && s.Entity.Kind == metric.Container {
			if use, over, ok := resourceusage.UsageOf(s); ok {
				u.add(use, over)
			}
		}
		return true
	})
	u.finish()
	return u
}

func (u *used) begin(name string) {
	u.pods = append(u.pods, podUse{name: name, from: len(u.uses), to: len(u.uses)})
}

func (u *used) add(use resourceusage.Usage, over metric.Window) {
	u.uses = append(u.uses, use)
	p := &u.pods[len(u.pods)-1]
	p.over, p.to = resourceusage.OlderWindow(p.over, over), len(u.uses)
}

// finish drops the last pod if it has no container with numbers.
func (u *used) finish() {
	if n := len(u.pods) - 1; n >= 0 && u.pods[n].from == u.pods[n].to {
		u.pods = u.pods[:n]
	}
}

// sum returns what a pod uses of a resource in thousandths: all its containers, each
// rounded up, or the one that is named. ok is whether there is such a number.
func (u *used) sum(p *podUse, name corev1.ResourceName, container string) (milli int64, ok bool) {
	if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
		return 0, false
	}
	for i := p.from; i < p.to; i++ {
		use := &u.uses[i]
		if container != "" && use.Name != container {
			continue
		}
		ok = true
		if name == corev1.ResourceCPU {
			milli += millicores(use.CPU)
		} else {
			milli += 1000 * use.Memory
		}
	}
	return milli, ok
}
