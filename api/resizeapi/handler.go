package resizeapi

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/resize"
)

// UsageReader is an immutable snapshot of measured usage.
type UsageReader interface {
	// Points yields the stored readings of a metric of an entity, in the catalogue's unit, between two
	// times.
	Points(e metric.Entity, id metric.ID, from, to time.Time) iter.Seq2[time.Time, float64]
	// PastContainers yields the containers that have stored readings, also those that are gone, of one
	// namespace or, if it is empty, of all.
	PastContainers(namespace metric.Namespace) iter.Seq[metric.Entity]
}

// podTimeout limits one call of Options.Pod.
const podTimeout = 5 * time.Second

// Options configure the handler.
type Options struct {
	// Usage returns the newest snapshot, or nil while there is none. Required.
	Usage func() UsageReader
	// Facts returns the cluster facts, or nil without a cluster. Required.
	Facts func() *cluster.Facts
	// Pod reads one pod from the API server. Its errors are those of Kubernetes. If it is nil, the pod
	// of Facts is used.
	Pod func(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// NewHandler returns a handler for all of Paths. It may serve many requests at once.
func NewHandler(opts Options) http.Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return weirdev.ReadHandler("a recommendation is read-only; `weir resize apply` applies one", ParseRequest, opts.answer)
}

// answer returns the list. Its errors are *weirdev.Problem.
func (o *Options) answer(ctx context.Context, request Request) (*RecommendationList, error) {
	facts := o.Facts()
	if facts == nil {
		return nil, &weirdev.Problem{Status: http.StatusServiceUnavailable, Message: "this weir has no API server to ask what pods request", Hint: "Ask the weir of the cluster."}
	}
	view := o.Usage()
	if view == nil || !facts.Synced {
		return nil, weirdev.NotMeasured()
	}
	m := usageMemory{view, o.Now()}
	list := NewList(m.now, "weir's memory")
	switch {
	case request.Pod != "":
		return o.answerPod(ctx, facts, m, request, list)
	case request.Workloads || request.Workload != (cluster.Owner{}):
		return answerWorkloads(facts, m, request, list)
	}
	for _, p := range podsOf(facts, metric.Namespace(request.Namespace)) {
		if p.Phase == cluster.Succeeded || p.Phase == cluster.Failed {
			continue
		}
		list.Add(m.recommend(resize.FromFacts(p), p.Node, &request.Options), request.All)
	}
	list.AddNotes(true)
	return list, nil
}

// answerPod returns the list for one pod.
func (o *Options) answerPod(ctx context.Context, facts *cluster.Facts, m usageMemory, r Request, list *RecommendationList) (*RecommendationList, error) {
	known := facts.Pod(metric.PodRef{Namespace: metric.Namespace(r.Namespace), Name: metric.PodName(r.Pod)})
	if known == nil {
		return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("weir does not know pod %s/%s", r.Namespace, r.Pod),
			Hint: "The API server has not reported this pod. Is it in another namespace?"}
	}
	pod := resize.FromFacts(known)
	if o.Pod != nil {
		ctx, cancel := context.WithTimeout(ctx, podTimeout)
		defer cancel()
		read, err := o.Pod(ctx, r.Namespace, r.Pod)
		switch {
		case err == nil:
			pod = resize.FromPod(read)
		case apierrors.IsNotFound(err):
			return nil, &weirdev.Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("the cluster has no pod %s/%s", r.Namespace, r.Pod), Hint: "It has just been deleted."}
		default:
			list.Notes = append(list.Notes, "The pod could not be read from the API server: its resize policies, and resizes under way, are not known.")
		}
	}
	list.Add(m.recommend(pod, metric.NodeName(pod.Node), &r.Options), true)
	list.AddNotes(false)
	return list, nil
}

// answerWorkloads returns the list for the workloads of a namespace or of the cluster, or for one.
func answerWorkloads(facts *cluster.Facts, m usageMemory, r Request, list *RecommendationList) (*RecommendationList, error) {
	var groups resize.Groups
	if r.Workload.Name != "" {
		groups.Expect(r.Namespace, r.Workload)
	}
	for _, p := range podsOf(facts, metric.Namespace(r.Namespace)) {
		created := p.Started
		if created.IsZero() {
			created = p.KnownAt
		}
		groups.Add(resize.FromFacts(p), p.Workload(), created)
	}
	for e := range m.view.PastContainers(metric.Namespace(r.Namespace)) {
		groups.AddGone(string(e.Namespace), string(e.Pod), string(e.Node), e.Name)
	}
	list.AddWorkloads(&groups, &r, func(w *resize.Workload) func(resize.Member, string, resize.Resource) []resize.UsagePoint {
		return func(pod resize.Member, container string, what resize.Resource) []resize.UsagePoint {
			return m.points(metric.Entity{Node: metric.NodeName(pod.Node), Namespace: metric.Namespace(w.Namespace), Pod: metric.PodName(pod.Pod), Name: container}, what)
		}
	})
	if r.Workload.Name != "" && len(list.Items) == 0 {
		return nil, NoPods(r)
	}
	return list, nil
}

// podsOf returns the pods of a namespace, or all pods if namespace is empty, in order.
func podsOf(facts *cluster.Facts, namespace metric.Namespace) []*cluster.Pod {
	pods := facts.PodsIn(namespace)
	if namespace == "" {
		pods = slices.Collect(facts.EachPod)
	}
	slices.SortFunc(pods, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// usageMemory is weir's memory at a time.
type usageMemory struct {
	view UsageReader
	now  time.Time
}

// recommend returns the recommendation for a pod from the readings in memory.
func (m usageMemory) recommend(p *resize.PodResources, node metric.NodeName, o *resize.Options) *resize.PodRecommendation {
	return resize.Recommend(p, func(container string, r resize.Resource) (points []resize.UsagePoint) {
		return m.points(metric.Entity{Node: node, Namespace: metric.Namespace(p.Namespace), Pod: metric.PodName(p.Name), Name: container}, r)
	}, *o)
}

// points returns what a container used or, if it has no name, its pod.
func (m usageMemory) points(e metric.Entity, r resize.Resource) (points []resize.UsagePoint) {
	e.Kind = metric.Container
	if e.Name == "" {
		e.Kind = metric.Pod
	}
	id, unit := metric.MemoryWorkingSet, 1.0
	if r == resize.CPU {
		id, unit = metric.CPUUsageRate, metric.Nanocores.Prometheus()
	}
	// Read everything in memory: the memory's own options limit how much that is. The clocks of
	// nodes may be ahead.
	for at, value := range m.view.Points(e, id, m.now.Add(-day), m.now.Add(time.Minute)) {
		points = append(points, resize.UsagePoint{At: at, Value: value * unit})
	}
	return points
}
