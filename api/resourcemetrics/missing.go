package resourcemetrics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/metric"
)

// explainer returns an Explainer of the snapshot that the answer is read from. Only an answer
// that lacks something needs it.
func (u *usageReader) explainer() *explain.Explainer {
	return &explain.Explainer{Now: u.options.Now(), View: u.view, Facts: u.facts, Sources: u.options.Sources()}
}

// reasonFor returns why a pod or node is not served. known is false if neither the API server
// nor a source has ever named it.
func (u *usageReader) reasonFor(e metric.Entity) (r explain.Outcome, known bool) {
	r, known = u.explainer().Rule(e, metric.CPUUsageRate, metric.MemoryWorkingSet)
	return notServedHere(r), known
}

// notServedHere returns the outcome r of something that this API does not serve. If r reports that it
// is served, its number is Ambiguous and this API cannot mark it, or no container of the pod is
// known and this API serves containers.
func notServedHere(r explain.Outcome) explain.Outcome {
	switch {
	case r.Served && r.Reason == metric.Ambiguous:
		r.Said = r.Message() + "; this API cannot mark its numbers as doubtful"
		r.Served = false
	case r.Served:
		return explain.Outcome{Reason: metric.NotReported, Said: "the node reports the pod as a whole and none of its containers"}
	}
	return r
}

// warningAgent is the agent in the warnings.
const warningAgent = "weir"

// maxReasons is how many reasons a warning counts separately.
const maxReasons = 4

// missingItem is an object that a LIST should have and does not.
type missingItem struct {
	name   string
	reason explain.Outcome
}

// warnMissing adds the warnings for the missing objects, which are sorted: how many and why,
// one as an example, and the command that explains more. Equal situations have equal texts: a
// client that shows each text once then shows it once.
func warnMissing(ctx context.Context, kind, noun string, served int, lacks []missingItem) {
	lacks = slices.DeleteFunc(lacks, func(l missingItem) bool { return !l.reason.Expected() })
	if len(lacks) == 0 {
		return
	}
	var counts [metric.NumReasons]int
	var reasons []metric.Reason
	for _, l := range lacks {
		if counts[l.reason.Reason]++; counts[l.reason.Reason] == 1 {
			reasons = append(reasons, l.reason.Reason)
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
	all := served + len(lacks)
	warning.AddWarning(ctx, warningAgent, fmt.Sprintf("%d of %d %s %s no metrics: %s", len(lacks), all, humanize.Plural(all, noun), humanize.HasHave(len(lacks)), strings.Join(words, ", ")))
	example := lacks[slices.IndexFunc(lacks, func(l missingItem) bool { return l.reason.Reason == reasons[0] })]
	warning.AddWarning(ctx, warningAgent, example.name+": "+example.reason.ShortMessage())
	warning.AddWarning(ctx, warningAgent, explainCommand(ctx, kind, lacks)+" shows more")
}

// explainCommand returns the command that explains the only missing object, or all missing
// objects in the scope of the LIST.
func explainCommand(ctx context.Context, kind string, lacks []missingItem) string {
	const explains = "kubectl weir explain "
	if len(lacks) == 1 {
		return explains + kind + " " + lacks[0].name
	}
	if namespace := request.NamespaceValue(ctx); namespace != "" {
		return explains + "missing -n " + namespace
	}
	return explains + "missing"
}

// warnPods adds the warnings for pods that are missing from a LIST.
func (u *usageReader) warnPods(ctx context.Context, served int, missing []*cluster.Pod) {
	if len(missing) == 0 {
		return // Fast path: no verdicts are read
	}
	survey := u.explainer().SurveyOf()
	lacks := make([]missingItem, 0, len(missing))
	for _, p := range missing {
		lacks = append(lacks, missingItem{p.String(), notServedHere(survey.Pod(p))})
	}
	warnMissing(ctx, "pod", "running pod", served, lacks)
}

// warnNodes adds the warnings for nodes that are missing from a LIST.
func (u *usageReader) warnNodes(ctx context.Context, served int, missing []*cluster.Node) {
	if len(missing) == 0 {
		return
	}
	survey := u.explainer().SurveyOf()
	lacks := make([]missingItem, 0, len(missing))
	for _, n := range missing {
		lacks = append(lacks, missingItem{string(n.Name), notServedHere(survey.Node(n.Name))})
	}
	warnMissing(ctx, "node", "node", served, lacks)
}
