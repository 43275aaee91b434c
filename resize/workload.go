package resize

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-metrics/weir/cluster"
)

// minLife is the shortest time for which one pod of a workload must have been measured. What lives
// shorter peaks between two readings.
const minLife = time.Minute

// Workload is an owner of pods, and its pods.
type Workload struct {
	Namespace string
	cluster.Owner
	// Template has the requests and limits of new pods: those of the workload's pod template or, without
	// one, of the newest pod.
	Template *PodResources
	Members  []Member
	// LimitRanges are those of the namespace.
	LimitRanges []corev1.LimitRange
	Autoscalers []UtilizationTarget

	newest time.Time // when the pod of Template was created
}

// UtilizationTarget is a metric of a HorizontalPodAutoscaler that scales a workload by what its pods use
// of a resource, as a share of what they request.
type UtilizationTarget struct {
	Autoscaler string // its name
	Resource   Resource
	Container  string // empty for the whole pod
	Percent    int32
	// Spec is that of the HPA, with the API server's defaults, and Metric the index in its metrics. Without
	// a Spec there are no Pairs.
	Spec   *autoscalingv2.HorizontalPodAutoscalerSpec
	Metric int
}

// Member is a pod of a workload.
type Member struct {
	Pod, Node string
	Gone      bool // it has ended or was deleted
}

// PodUsage is the usage of a container in one pod.
type PodUsage struct {
	Pod    string
	Points []UsagePoint
}

// WorkloadFacts describes the workload of a recommendation.
type WorkloadFacts struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Pods is how many pods there are, and GonePods how many others have readings: pods that have ended or
	// were deleted.
	Pods     int `json:"pods"`
	GonePods int `json:"gonePods,omitempty"`
	// FromTemplate means that the requests are those of the workload's pod template. Otherwise they are
	// those of its newest pod, which may have been resized in place.
	FromTemplate bool `json:"fromTemplate"`
}

// String returns kind/name as kubectl takes it: "deployment/web".
func (w *WorkloadFacts) String() string { return strings.ToLower(w.Kind) + "/" + w.Name }

// running returns how many pods w has, and at least 1. A nil w is a single pod.
func (w *Workload) running() (n int64) {
	if w != nil {
		for _, m := range w.Members {
			if !m.Gone {
				n++
			}
		}
	}
	return max(n, 1)
}

// RecommendWorkload returns the recommendation for the pod template of w, by the readings of all its
// pods together: the percentile is that of all readings, as if one container had them. use returns the
// usage of a container in a pod, or of the whole pod if the name of the container is empty.
func RecommendWorkload(w *Workload, use func(m Member, container string, r Resource) []UsagePoint, o Options) *PodRecommendation {
	gone := map[Member]bool{}
	facts := &WorkloadFacts{Kind: w.Kind, Name: w.Name}
	rec := w.recommend(facts, func(container string, r Resource) *UsageFigure {
		pods := make([]PodUsage, 0, len(w.Members))
		for _, m := range w.Members {
			points := use(m, container, r)
			if len(points) > 0 && m.Gone {
				gone[m] = true
			}
			pods = append(pods, PodUsage{m.Pod, points})
		}
		return newFigure(r, &o, pods...)
	}, &o)
	facts.GonePods = len(gone)
	return rec
}

// Reconsider returns a recommendation of RecommendWorkload for the requests of w.Template and the
// LimitRanges of w, from the same usage, with Pairs for what the autoscalers of w keep as it is.
func (w *Workload) Reconsider(rec *PodRecommendation, o Options) *PodRecommendation {
	facts := *rec.Workload
	facts.FromTemplate = true
	w.Members = make([]Member, facts.Pods)
	again := w.recommend(&facts, func(container string, r Resource) *UsageFigure {
		for i := range rec.Requests {
			if a := &rec.Requests[i]; a.Container == container && a.Resource == r {
				return a.Used
			}
		}
		return nil
	}, &o)
	w.addPairs(again, rec)
	var foreign []string
	for i := range rec.Requests {
		if name := rec.Requests[i].Container; name != "" && w.Template.Container(name) == nil && !slices.Contains(foreign, name) {
			foreign = append(foreign, name)
		}
	}
	if len(foreign) > 0 {
		again.Notes = append(again.Notes, fmt.Sprintf("its pods also have %s, which the template does not have: an admission webhook adds such containers, and its configuration their requests", strings.Join(foreign, ", ")))
	}
	return again
}

// recommend returns the recommendation from the usage of all pods.
func (w *Workload) recommend(facts *WorkloadFacts, figure func(container string, r Resource) *UsageFigure, o *Options) *PodRecommendation {
	// Of the pod, only requests and limits matter: its state and what its node can do do not restrict a
	// new pod.
	p := *w.Template
	p.Namespace, p.Name, p.UID, p.Node, p.QoS = w.Namespace, "", "", "", ""
	p.Phase, p.Terminating, p.Static, p.Windows, p.OldKubelet, p.Resizing, p.PodLevel.Fixed = string(cluster.Running), false, false, false, false, "", false
	p.Containers = slices.Clone(p.Containers)
	for i := range p.Containers {
		p.Containers[i].Running, p.Containers[i].RestartsFor = true, nil
	}
	rec := recommend(&p, w, figure, o)
	facts.Pods = 0
	for _, m := range w.Members {
		if !m.Gone {
			facts.Pods++
		}
	}
	rec.Workload = facts
	rec.Frees.CPU.Mul(int64(facts.Pods))
	rec.Frees.Memory.Mul(int64(facts.Pods))
	return rec
}

// qosChangeMessage returns the text for a change that would change the QoS class of pods.
func (w *Workload) qosChangeMessage(from, to Class) string {
	if w == nil {
		return qosChangeMessage(from, to)
	}
	s := fmt.Sprintf("the QoS class of its pods would change from %s to %s", from, to)
	if from == Guaranteed {
		s += ", which a node evicts earlier and kills earlier when memory is short; requests and limits of Guaranteed pods change together (--limits)"
	}
	return s
}

// least returns the smallest request that the LimitRanges of the namespace accept for a container, and
// the reason.
func (w *Workload) least(container string, r Resource, limit Amount, follows bool) (least int64, reason string) {
	if w == nil || container == "" {
		return 0, ""
	}
	raise := func(to int64, format, name string) {
		if to > least {
			least, reason = to, fmt.Sprintf(format, name, FormatAmount(r, to))
		}
	}
	for i := range w.LimitRanges {
		for _, item := range w.LimitRanges[i].Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			name := corev1.ResourceName(r)
			if q, ok := item.Min[name]; ok {
				raise(quantityValue(r, &q), "LimitRange %s requires at least %s", w.LimitRanges[i].Name)
			}
			if q, ok := item.MaxLimitRequestRatio[name]; ok && limit.Set && !follows {
				if ratio := q.AsApproximateFloat64(); ratio > 0 {
					raise(int64(math.Ceil(float64(limit.Value)/ratio)), "LimitRange %s requires, by its ratio of limit to request, at least %s", w.LimitRanges[i].Name)
				}
			}
		}
	}
	return least, reason
}

// refusals returns the reasons why a request of the template does not change.
func (w *Workload) refusals(change ResourceChange) (all []Refusal) {
	for _, t := range w.Autoscalers {
		if t.Resource == change.Resource && (t.Container == "" || t.Container == change.Container) {
			all = append(all, Refusal{Autoscaled, fmt.Sprintf("HPA %s keeps the use of %s at %d%% of the request: with another request it would run another number of pods", t.Autoscaler, t.Resource, t.Percent)})
		}
	}
	for i := range w.LimitRanges {
		for _, item := range w.LimitRanges[i].Spec.Limits {
			q, ok := item.Max[corev1.ResourceName(change.Resource)]
			if most := quantityValue(change.Resource, &q); ok && item.Type == corev1.LimitTypeContainer && change.Request.Value > most {
				all = append(all, Refusal{Invalid, fmt.Sprintf("LimitRange %s allows at most %s", w.LimitRanges[i].Name, FormatAmount(change.Resource, most))})
			}
		}
	}
	return all
}

// Check returns the reasons why changes cannot be made to the template of w. It returns none if they can.
// It fails if the template does not have one of the containers.
func (w *Workload) Check(changes []ResourceChange) (all []Refusal, err error) {
	after, err := w.Template.With(changes)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		if !change.Request.Set {
			continue
		}
		all = append(all, w.refusals(change)...)
		_, limits := after.of(change.Container)
		if least, reason := w.least(change.Container, change.Resource, limits.Get(change.Resource), false); change.Request.Value < least {
			all = append(all, Refusal{Invalid, reason})
		}
	}
	if from, to := ClassOf(w.Template), ClassOf(after); from != to {
		all = append(all, Refusal{QoSClass, w.qosChangeMessage(from, to)})
	}
	return all, nil
}

// Groups collects pods by workload. The zero Groups is empty.
type Groups struct {
	// Loose is how many pods have no workload: nothing creates them again.
	Loose     int
	workloads map[groupKey]*Workload
	members   map[podKey]*Workload // nil for a pod of Add
}

type groupKey struct {
	namespace string
	owner     cluster.Owner
}

type podKey struct{ namespace, pod, node string }

// Expect adds a workload, which may have no pods.
func (g *Groups) Expect(namespace string, owner cluster.Owner) *Workload {
	key := groupKey{namespace, owner}
	w := g.workloads[key]
	if w == nil {
		w = &Workload{Namespace: namespace, Owner: owner}
		if g.workloads == nil {
			g.workloads, g.members = map[groupKey]*Workload{}, map[podKey]*Workload{}
		}
		g.workloads[key] = w
	}
	return w
}

// Add adds a pod of the cluster by its owner, which is that of cluster.Pod.Workload.
func (g *Groups) Add(p *PodResources, owner cluster.Owner, created time.Time) {
	if owner.Name == "" {
		g.Loose++
		return
	}
	if cron, ok := cronJobOf(owner.Name); ok && owner.Kind == "Job" {
		owner = cluster.Owner{Kind: "CronJob", Name: cron}
	}
	w := g.Expect(p.Namespace, owner)
	w.Members = append(w.Members, Member{p.Name, p.Node, p.Phase == string(cluster.Succeeded) || p.Phase == string(cluster.Failed)})
	g.members[podKey{p.Namespace, p.Name, p.Node}] = nil
	if w.Template == nil || !created.Before(w.newest) {
		w.Template, w.newest = p, created
	}
}

// AddGone adds a container that has readings, unless Add has added its pod. Its workload is the one that
// names pods in this way; a name that fits several workloads is left out. Call it after all calls of Add.
func (g *Groups) AddGone(namespace, pod, node, container string) {
	key := podKey{namespace, pod, node}
	w, known := g.members[key]
	if !known {
		if w = g.ownerOf(namespace, pod); w == nil {
			return
		}
		g.members[key] = w
		w.Members = append(w.Members, Member{pod, node, true})
	}
	if w == nil || !w.newest.IsZero() {
		return
	}
	if w.Template == nil { // there is no pod whose requests could be read
		w.Template = &PodResources{}
	}
	if w.Template.Container(container) == nil {
		w.Template.Containers = append(w.Template.Containers, ContainerResources{Name: container})
	}
}

// ownerOf returns the only known workload that would name a pod so, or nil.
func (g *Groups) ownerOf(namespace, pod string) (found *Workload) {
	for _, owner := range possibleOwners(pod) {
		if w := g.workloads[groupKey{namespace, owner}]; w != nil {
			if found != nil {
				return nil
			}
			found = w
		}
	}
	return found
}

// Sorted returns the workloads that have or had pods, by namespace, kind and name.
func (g *Groups) Sorted() []*Workload {
	list := slices.SortedFunc(maps.Values(g.workloads), func(a, b *Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.DeleteFunc(list, func(w *Workload) bool { return w.Template == nil })
}

// possibleOwners returns the workloads that would have named a pod so: NAME-ORDINAL (StatefulSet),
// NAME-RANDOM (DaemonSet, ReplicaSet, Job), NAME-HASH-RANDOM (Deployment), NAME-INDEX-RANDOM (indexed
// Job), NAME-MINUTES-RANDOM and NAME-MINUTES-INDEX-RANDOM (CronJob).
func possibleOwners(pod string) (all []cluster.Owner) {
	base, last := cutLast(pod)
	if isNumber(last) {
		all = append(all, cluster.Owner{Kind: "StatefulSet", Name: base})
	}
	if len(last) != 5 || !isRandom(last) {
		return all
	}
	addJob := func(name string) {
		all = append(all, cluster.Owner{Kind: "Job", Name: name})
		if cron, ok := cronJobOf(name); ok {
			all = append(all, cluster.Owner{Kind: "CronJob", Name: cron})
		}
	}
	all = append(all, cluster.Owner{Kind: "DaemonSet", Name: base}, cluster.Owner{Kind: "ReplicaSet", Name: base})
	addJob(base)
	name, hash := cutLast(base)
	if isRandom(hash) {
		all = append(all, cluster.Owner{Kind: "Deployment", Name: name})
	}
	if isNumber(hash) {
		addJob(name)
	}
	return all
}

func cutLast(name string) (base, last string) {
	i := max(strings.LastIndexByte(name, '-'), 0)
	return name[:i], strings.TrimPrefix(name[i:], "-")
}

// isRandom reports whether text has only the characters that Kubernetes chooses for names and hashes
// (k8s.io/apimachinery/pkg/util/rand).
func isRandom(text string) bool {
	return text != "" && strings.Trim(text, "bcdfghjklmnpqrstvwxz2456789") == ""
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// cronJobOf returns the CronJob of a Job that is named after one: NAME-MINUTES, the scheduled time in
// minutes since the Unix epoch. Smaller numbers, such as a date, are not from a CronJob: it has named
// Jobs so since 2021.
func cronJobOf(job string) (cron string, ok bool) {
	const least = 26_000_000 // in 2019
	cron, last := cutLast(job)
	minutes, err := strconv.Atoi(last)
	return cron, err == nil && isNumber(last) && len(last) == 8 && minutes >= least && cron != ""
}
