package estimate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/resize"
)

// Tool is a tool whose estimator computes the requests of package resize, with its default options.
type Tool string

// The tools.
const (
	ToolVPA       Tool = "vpa"
	ToolKRR       Tool = "krr"
	ToolAutopilot Tool = "autopilot"
	// ToolAdaptive is weir's own.
	ToolAdaptive Tool = "adaptive"
)

// OwnRule is the name of the rule of package resize itself: a percentile and headroom. It is not a Tool.
const OwnRule = "weir"

// Names returns what ParseTool takes.
func Names() []string {
	return []string{OwnRule, string(ToolVPA), string(ToolKRR), string(ToolAutopilot), string(ToolAdaptive)}
}

// ParseTool returns the tool of a name, or nil for OwnRule.
func ParseTool(name string) (resize.Tool, error) {
	switch {
	case name == OwnRule:
		return nil, nil
	case !slices.Contains(Names(), name):
		return nil, fmt.Errorf("%q is not an estimator: there are %s", name, strings.Join(Names(), ", "))
	}
	return Tool(name), nil
}

// NewEstimator returns an estimator of the tool.
func (t Tool) NewEstimator() Estimator {
	switch t {
	case ToolKRR:
		return NewKRR(KRRDefaults())
	case ToolAdaptive:
		return NewAdaptive(AdaptiveDefaults())
	case ToolAutopilot:
		return NewAutopilot(AutopilotDefaults())
	}
	return NewVPA(VPADefaults())
}

// Estimate implements resize.Tool, at the time of the last point.
func (t Tool) Estimate(r resize.Resource, pods []resize.PodUsage) resize.Amount {
	var samples []Sample
	for _, pod := range pods {
		for _, p := range pod.Points {
			samples = append(samples, Sample{Pod: pod.Pod, Resource: r, UsagePoint: p})
		}
	}
	if len(samples) == 0 {
		return resize.Amount{}
	}
	slices.SortStableFunc(samples, func(a, b Sample) int { return a.At.Compare(b.At) })
	e := t.NewEstimator()
	for _, s := range samples {
		e.Observe(s)
	}
	requests := e.Recommend(samples[len(samples)-1].At)
	return requests.Get(r)
}
