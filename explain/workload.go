package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// Workload is what the pods of one workload use, in a report on them.
type Workload struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// CPUCores and MemoryBytes are the sums of the pods that have both numbers.
	CPUCores    float64 `json:"cpuCores"`
	MemoryBytes float64 `json:"memoryBytes"`
	// Autoscalers scale its pods, if weir watches them: see Explainer.Autoscalers.
	Autoscalers []string `json:"autoscalers,omitempty"`
}

// ownAutoscaler begins the name of an Autoscaler in answers.
const ownAutoscaler = "autoscaler/"

// AutoscalerName returns the name of an autoscaler in answers: "shop/web" is a HorizontalPodAutoscaler,
// and "autoscaler/shop/web" is an Autoscaler, which weir defines.
func AutoscalerName(own bool, namespace, name string) string {
	if own {
		return ownAutoscaler + namespace + "/" + name
	}
	return namespace + "/" + name
}

// ParseAutoscalerName is the inverse of AutoscalerName.
func ParseAutoscalerName(text string) (own bool, namespace, name string) {
	if strings.Count(text, "/") == 2 {
		text, own = strings.CutPrefix(text, ownAutoscaler)
	}
	namespace, name, _ = strings.Cut(text, "/")
	return own, namespace, name
}

// Workload reports what the pods of a workload use together, and everything that is missing of them.
// The kind may be in lower case: "deployment". It returns false if there is no such pod.
func (ex *Explainer) Workload(namespace metric.Namespace, kind, name string) (MissingReport, bool) {
	sum := Workload{}
	pods := slices.DeleteFunc(slices.Clone(ex.Facts.PodsIn(namespace)), func(p *cluster.Pod) bool {
		owner := p.Workload()
		if owner.Name != name || !strings.EqualFold(owner.Kind, kind) {
			return true
		}
		sum.Kind, sum.Name = owner.Kind, owner.Name
		return false
	})
	if len(pods) == 0 {
		return MissingReport{}, false
	}
	r := newReporter(ex.surveyOfPods(pods))
	scaled := map[string]bool{}
	for _, p := range pods {
		outcome := r.s.Pod(p)
		r.pod(p, outcome)
		if outcome.Served && ex.View != nil {
			if sample := ex.lookupPod(p.PodRef); sample != nil {
				nanocores, _ := sample.Values.Get(metric.CPUUsageRate)
				bytes, _ := sample.Values.Get(metric.MemoryWorkingSet)
				sum.CPUCores += nanocores / 1e9
				sum.MemoryBytes += bytes
			}
		}
		if ex.Autoscalers != nil {
			for _, a := range ex.Autoscalers(p) {
				scaled[a] = true
			}
		}
	}
	sum.Autoscalers = slices.Sorted(maps.Keys(scaled))
	title := fmt.Sprintf("%s %s/%s", sum.Kind, namespace, name)
	report := r.report(title)
	report.Namespace, report.Workload = namespace, &sum
	report.Summary = title + ": " + report.Summary
	if r.pods.Served > 0 {
		report.Summary += fmt.Sprintf(" Together they use %s of CPU and %s of memory.", humanize.Cores(sum.CPUCores*1e9), humanize.Bytes(sum.MemoryBytes))
	}
	return report, true
}
