package resizecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/resize"
)

// maxLoads is for how many workloads of a list weir is asked for loads.
const maxLoads = 50

// readLoads reads the loads of the workloads in a list that have an autoscaler: in weir's memory, a list has
// none.
func (r *recommendCommand) readLoads(ctx context.Context, request resizeapi.Request, state *clusterState, list *resizeapi.RecommendationList) {
	asked := 0
	for _, rec := range list.Items {
		owner := cluster.Owner{Kind: rec.Workload.Kind, Name: rec.Workload.Name}
		if len(rec.Loads) > 0 || len(state.autoscalers[workloadKey{rec.Namespace, owner}]) == 0 {
			continue
		}
		if asked++; asked > maxLoads {
			list.Notes = append(list.Notes, fmt.Sprintf("Only for the first %d workloads with HPAs there are pairs of requests and targets: name a namespace or a workload for others.", maxLoads))
			return
		}
		one := request.Clone()
		one.Namespace = rec.Namespace
		err := errors.Join(one.Set("workloads", "false"), one.Set("workload", rec.Workload.String()))
		var answer *resizeapi.RecommendationList
		if err == nil {
			answer, err = r.readUsage(ctx, one, nil)
		}
		if err != nil {
			list.Notes = append(list.Notes, fmt.Sprintf("The load of %s in namespace %s could not be read, nor those that follow: %v.", rec.Workload, rec.Namespace, err))
			return
		}
		for _, item := range answer.Items { // one
			rec.Loads = item.Loads
		}
	}
}

// writePairs describes which requests could change together with the target of an HPA.
func writePairs(p *humanize.Page, rec *resize.PodRecommendation) {
	line := func(column int, text string) { p.Line(column, humanize.Plain, text) }
	for i := range rec.Pairs {
		pair := &rec.Pairs[i]
		p.Gap()
		if pair.Refused != "" {
			line(0, fmt.Sprintf("%s: the request and the target of HPA %s cannot change together", pair.Resource, pair.Autoscaler))
			line(2, pair.Refused+".")
			continue
		}
		for j := range pair.Requests {
			c := &pair.Requests[j]
			line(0, fmt.Sprintf("%s %s: %s with HPA %s at %d%% → %s with HPA %[4]s at %[7]d%%", c.Container, pair.Resource, amount(pair.Resource, &c.Request), pair.Autoscaler, pair.Target, amount(pair.Resource, &c.Proposed), pair.NewTarget))
		}
		subject, rounding := "a pod", ""
		if pair.Container != "" {
			subject = "container " + pair.Container
		}
		if pair.DifferencePercent != 0 {
			rounding = fmt.Sprintf(" (%+.2g%%: a target is a whole number)", pair.DifferencePercent)
		}
		line(2, fmt.Sprintf("What HPA %s has %s use, request × target, stays %s%s. It would have wanted the same number of pods at all %d times that were recorded.",
			pair.Autoscaler, subject, amount(pair.Resource, pair.Product), rounding, pair.Compared))
		line(2, "To change both, pause the HPA: with one of them alone it would scale wrongly. Until the last command it does not scale at all.")
		for _, command := range pairCommands(rec, pair) {
			line(4, command)
		}
	}
}

// pairCommands returns the commands that change both.
func pairCommands(rec *resize.PodRecommendation, pair *resize.Pair) []string {
	hpa := fmt.Sprintf("kubectl patch hpa %s -n %s --type ", pair.Autoscaler, rec.Namespace)
	field := "resource"
	if pair.Container != "" {
		field = "containerResource"
	}
	path := fmt.Sprintf("/spec/metrics/%d/%s/target/averageUtilization", pair.By.Metric, field)
	commands := []string{
		hpa + `merge -p '{"spec":{"behavior":{"scaleUp":{"selectPolicy":"Disabled"},"scaleDown":{"selectPolicy":"Disabled"}}}}'`,
		hpa + fmt.Sprintf(`json -p '[{"op":"test","path":"%[1]s","value":%[2]d},{"op":"replace","path":"%[1]s","value":%[3]d}]'`, path, pair.Target, pair.NewTarget),
	}
	workload := strings.Replace(rec.Workload.String(), "/", " ", 1)
	for _, c := range pair.Requests {
		commands = append(commands, fmt.Sprintf("kubectl set resources %s -n %s -c %s --requests=%s=%s", workload, rec.Namespace, c.Container, pair.Resource, c.Proposed.String()))
	}
	if rec.Workload.Kind != "ReplicaSet" {
		commands = append(commands, fmt.Sprintf("kubectl rollout status %s -n %s", workload, rec.Namespace))
	}
	behavior, _ := json.Marshal(pair.By.Spec.Behavior) // plain data
	return append(commands, fmt.Sprintf(`%smerge -p '{"spec":{"behavior":%s}}'`, hpa, behavior))
}

// adoptPairs proposes the requests of the pairs of rec. It returns their HPAs with the new targets, by name.
func adoptPairs(rec *resize.PodRecommendation) map[string]*autoscalingv2.HorizontalPodAutoscalerSpec {
	hpas := map[string]*autoscalingv2.HorizontalPodAutoscalerSpec{}
	for i := range rec.Pairs {
		pair := &rec.Pairs[i]
		if pair.Refused != "" {
			continue
		}
		for _, c := range pair.Requests {
			j := slices.IndexFunc(rec.Requests, func(a resize.Advice) bool { return a.Container == c.Container && a.Resource == pair.Resource })
			rec.Requests[j].Proposed = &c.Proposed
		}
		if hpas[pair.Autoscaler] == nil {
			hpas[pair.Autoscaler] = pair.By.Spec.DeepCopy()
		}
		pair.By.SetPercent(hpas[pair.Autoscaler], pair.NewTarget)
	}
	return hpas
}

// hpaPatch returns a patch of the metrics of an HPA, which replaces all of them.
func hpaPatch(namespace, name string, spec *autoscalingv2.HorizontalPodAutoscalerSpec) map[string]any {
	return map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": map[string]any{"metrics": spec.Metrics}}
}
