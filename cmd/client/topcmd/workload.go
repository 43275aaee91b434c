package topcmd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/metric/series"
)

// workloads are the owners of pods, such as Deployments. The command adds up the pods of each: the API
// has no list of them.
const workloads usage.Resource = "workloads"

// workloadMetrics are the metrics that are added up, besides CPU and memory.
var workloadMetrics = []metric.ID{
	metric.CPURequest, metric.CPULimit, metric.MemoryRequest, metric.MemoryLimit, metric.MemoryRSS, metric.NetworkRxRate, metric.NetworkTxRate, metric.EphemeralStorageUsage,
}

func isNamespaced(r usage.Resource) bool { return r == workloads || r.Namespaced() }

// list requests the list of the resource.
func (v *viewer) list(ctx context.Context) (*usage.List, error) {
	if v.resource != workloads {
		return v.lister.List(ctx, v.resource, v.query)
	}
	q := v.query
	q.Name = ""
	pods, err := v.lister.List(ctx, usage.Pods, q)
	if err != nil {
		return nil, err
	}
	items := slices.DeleteFunc(sumWorkloads(pods.Items), func(it usage.Item) bool { return !isNamed(it.Workload, v.query.Name) })
	return &usage.List{APIVersion: weirdev.APIVersion, Kind: "WorkloadUsageList", Resource: workloads, Items: items}, nil
}

// isNamed reports whether a pattern, NAME or KIND/NAME, matches a workload.
func isNamed(w cluster.Owner, pattern string) bool {
	kind, name, both := strings.Cut(pattern, "/")
	if !both {
		return pattern == "" || series.Match(pattern, w.Name)
	}
	return strings.EqualFold(kind, w.Kind) && series.Match(name, w.Name)
}

// workloadName returns the name of an item's workload as kubectl accepts it: "deployment/web".
func workloadName(it *usage.Item) string {
	w := workloadOf(it)
	return strings.ToLower(w.Kind) + "/" + w.Name
}

// workloadOf returns the workload of a pod. A pod without one is its own.
func workloadOf(it *usage.Item) cluster.Owner {
	if it.Workload.Name == "" {
		return cluster.Owner{Kind: "Pod", Name: string(it.Pod)}
	}
	return it.Workload
}

// sumWorkloads returns the workloads of pods with the sums of these, by namespace, kind and name.
func sumWorkloads(all []usage.Item) []usage.Item {
	type key struct {
		namespace metric.Namespace
		workload  cluster.Owner
	}
	groups := map[key][]*usage.Item{}
	for _, pod := range uniquePods(all) {
		k := key{pod.Namespace, workloadOf(pod)}
		groups[k] = append(groups[k], pod)
	}
	items := []usage.Item{}
	for _, k := range slices.SortedFunc(maps.Keys(groups), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.workload.Kind, b.workload.Kind), cmp.Compare(a.workload.Name, b.workload.Name))
	}) {
		it := sumPods(groups[k])
		it.Namespace, it.Workload = k.namespace, k.workload
		items = append(items, it)
	}
	return items
}

// sumPods returns the sums of pods. The sum of a further metric is known only if each pod has it, and
// CPU and memory.
func sumPods(pods []*usage.Item) usage.Item {
	lack := len(incompleteOf(pods))
	sum := usage.Item{Pods: &usage.PodCount{Measured: len(pods) - lack, Total: len(pods)}, Reasons: sharedReasons(pods)}
	var past [][]float64
	for _, pod := range pods {
		addUsage(&sum, pod)
		past = append(past, pod.CPUHistory)
		if pod.Restarts != nil {
			n := *pod.Restarts
			if sum.Restarts != nil {
				n += *sum.Restarts
			}
			sum.Restarts = &n
		}
		sum.OOMKills += pod.OOMKills
		if pod.Partial != nil && sum.Partial == nil {
			partial := *pod.Partial
			partial.Message = string(pod.Pod) + ": " + partial.Message
			sum.Partial = &partial
		}
	}
	sum.CPUHistory = sumHistories(past)
	for _, id := range workloadMetrics {
		total, known := 0.0, lack == 0
		for _, pod := range pods {
			v, ok := pod.Metrics[id.String()]
			total, known = total+v, known && ok
		}
		if known {
			if sum.Metrics == nil {
				sum.Metrics = map[string]float64{}
			}
			sum.Metrics[id.String()] = total
		}
	}
	if requested := sum.Metrics[metric.CPURequest.String()]; requested > 0 {
		sum.Metrics[metric.CPUUtilization.String()] = float64(sum.CPU.Nanocores) / requested
	}
	if requested := sum.Metrics[metric.MemoryRequest.String()]; requested > 0 {
		sum.Metrics[metric.MemoryUtilization.String()] = float64(sum.Memory.WorkingSetBytes) / requested
	}
	return sum
}

// sharedReasons returns each reason of pods for CPU and memory once, with the name of the first pod that has it and how
// many others do.
func sharedReasons(pods []*usage.Item) (reasons []usage.GroupReason) {
	type key struct{ group, reason string }
	counts := map[key]int{}
	first := map[key]metric.PodName{}
	for _, pod := range pods {
		for _, r := range mainReasons(pod.Reasons) {
			k := key{r.Group, r.Reason}
			if counts[k]++; counts[k] == 1 {
				first[k] = pod.Pod
				reasons = append(reasons, r)
			}
		}
	}
	for i := range reasons {
		r := &reasons[i]
		k := key{r.Group, r.Reason}
		others := ""
		if n := counts[k] - 1; n > 0 {
			others = fmt.Sprintf(" and %d more", n)
		}
		r.Message = string(first[k]) + others + ": " + r.Message
	}
	return reasons
}

// earlier returns the earlier of two times, without those that are zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
