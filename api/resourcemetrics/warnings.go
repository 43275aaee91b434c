package resourcemetrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/weir-metrics/weir/metric"
)

// agent is who warns.
const agent = "weir"

// maxReasons is how many reasons a warning counts one by one.
const maxReasons = 4

// lack is one thing that a LIST should have and does not.
type lack struct {
	name string
	absence
}

// warn tells whoever lists that lacks, which come in order, are not among the
// served: how many and why, one as an example, and the command that says more.
// The text depends on nothing else, so that equal warnings are equal texts: a
// client that shows each text once shows it once.
func warn(ctx context.Context, kind, noun string, served int, lacks []lack) {
	lacks = slices.DeleteFunc(lacks, func(l lack) bool { return !expected(l.reason) })
	if len(lacks) == 0 {
		return
	}
	var counts [metric.NumReasons]int
	var reasons []metric.Reason
	for _, l := range lacks {
		if counts[l.reason]++; counts[l.reason] == 1 {
			reasons = append(reasons, l.reason)
		}
	}
	slices.SortFunc(reasons, func(a, b metric.Reason) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var words []string
	rest := len(lacks)
	for _, r := range reasons[:min(len(reasons), maxReasons)] {
		words = append(words, fmt.Sprintf("%d %v", counts[r], r))
		rest -= counts[r]
	}
	if rest > 0 {
		words = append(words, fmt.Sprintf("%d for other reasons", rest))
	}
	verb := "have"
	if len(lacks) == 1 {
		verb = "has"
	}
	if served+len(lacks) != 1 {
		noun += "s"
	}
	warning.AddWarning(ctx, agent, fmt.Sprintf("%d of %d %s %s no metrics: %s", len(lacks), served+len(lacks), noun, verb, strings.Join(words, ", ")))
	example := lacks[slices.IndexFunc(lacks, func(l lack) bool { return l.reason == reasons[0] })]
	warning.AddWarning(ctx, agent, fmt.Sprintf("%s: %v", example.name, example.absence))
	warning.AddWarning(ctx, agent, explain(ctx, kind, lacks)+" tells more")
}

// explain returns the command that tells more: of the only one that is missing, or
// of all of them, as far as the LIST went.
func explain(ctx context.Context, kind string, lacks []lack) string {
	const command = "kubectl weir explain "
	if len(lacks) == 1 {
		return command + kind + " " + lacks[0].name
	}
	if namespace := request.NamespaceValue(ctx); namespace != "" {
		return command + "missing -n " + namespace
	}
	return command + "missing"
}

// warnPods warns of the pods that are missing from a LIST.
func (a *answer) warnPods(ctx context.Context, served int, missing []*metric.PodFacts) {
	if len(missing) == 0 {
		return // Fast path: no verdict needs to be read
	}
	pods := make(map[metric.PodRef]struct{}, len(missing))
	nodes := map[metric.NodeName]struct{}{}
	for _, p := range missing {
		pods[p.PodRef], nodes[p.Node] = struct{}{}, struct{}{}
	}
	f := a.find(
		func(ref metric.PodRef) bool { _, ok := pods[ref]; return ok },
		func(n metric.NodeName) bool { _, ok := nodes[n]; return ok })
	lacks := make([]lack, 0, len(missing))
	for _, p := range missing {
		lacks = append(lacks, lack{p.String(), a.whyPod(p, f)})
	}
	warn(ctx, "pod", "running pod", served, lacks)
}

// warnNodes warns of the nodes that are missing from a LIST.
func (a *answer) warnNodes(ctx context.Context, served int, missing []*metric.NodeFacts) {
	if len(missing) == 0 {
		return
	}
	f := a.find(
		func(metric.PodRef) bool { return false },
		func(metric.NodeName) bool { return true })
	lacks := make([]lack, 0, len(missing))
	for _, n := range missing {
		lacks = append(lacks, lack{string(n.Name), a.whyNode(n.Name, f)})
	}
	warn(ctx, "node", "node", served, lacks)
}
