package resizecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/resize/apply"
	"github.com/weir-metrics/weir/sources/host/inspect"
)

// tellPlan tells what is to change.
func tellPlan(p *apply.Plan) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Pod %s/%s on node %s, which stays %s:\n", p.Namespace, p.Pod, p.Node, p.QoS)
	for _, s := range p.Steps {
		from := s.From
		if from == "" {
			from = "none"
		}
		fmt.Fprintf(&out, "  %s: %s %s %s → %s\n", s.Container, s.Resource, s.What, from, s.To)
	}
	return out.String()
}

// stages says how far a resize is.
var stages = map[apply.Stage]string{
	apply.Asked:      "The API server has taken it; the kubelet has not acted yet",
	apply.Deferred:   "The kubelet defers it",
	apply.Infeasible: "The kubelet will not do it",
	apply.InProgress: "The kubelet is at it",
	apply.Failing:    "The kubelet cannot do it, and tries again",
	apply.Done:       "The kubelet has done it",
	apply.Superseded: "It is overtaken",
	apply.Gone:       "There is nothing left to resize",
}

func tellState(s apply.State) string {
	text := stages[s.Stage]
	if s.Message != "" {
		text += ": " + strings.TrimSuffix(s.Message, ".")
	}
	return text + "."
}

// tellResult tells what was verified.
func tellResult(r *apply.Result) string {
	var out strings.Builder
	if r.Stage != apply.Done {
		return ""
	}
	fmt.Fprintf(&out, "It took %.1f s.\n", r.TookSeconds)
	restarted := 0
	for _, c := range r.Containers {
		if c.Restarted {
			restarted++
			fmt.Fprintf(&out, "Container %s was restarted: it has restarted %d times in all.\n", c.Name, c.Restarts)
		}
	}
	if restarted == 0 {
		fmt.Fprintf(&out, "Nothing was restarted: %s as before.\n", same(r.Containers))
	}
	out.WriteString(tellCgroups(r.Cgroups))
	return out.String()
}

// same tells the containers that went on: "app (5f6197a9c1c9, restarts 0)".
func same(list []apply.Kept) string {
	words := make([]string, len(list))
	for i, c := range list {
		_, id, ok := strings.Cut(c.ID, "://")
		if !ok {
			id = c.ID
		}
		words[i] = fmt.Sprintf("%s (%.12s, restarts %d)", c.Name, id, c.Restarts)
	}
	return strings.Join(words, ", ")
}

func tellCgroups(c *apply.Cgroups) string {
	switch {
	case c == nil:
		return ""
	case len(c.Problems) > 0:
		return "Cgroups are not as they should be: " + strings.Join(c.Problems, "; ") + ".\n"
	case !c.Checked && len(c.Found) == 0:
		return "Cgroups were not checked: " + c.Why + ".\n"
	case !c.Checked:
		return "The pod has one cgroup of its own; values were not checked: " + c.Why + ".\n"
	}
	return "Cgroups have the new values, and the pod has one of its own.\n"
}

// verdict returns the error that the exit status goes by.
func verdict(r *apply.Result) error {
	switch {
	case r.InPlace():
		return nil
	case r.Stage == apply.Done:
		return errors.New("the resize was done, but not as it should be")
	case r.Stage == apply.Deferred:
		return cli.Hintf(fmt.Errorf("the kubelet still defers the resize: %s", r.Message),
			"It does it as soon as there is room on the node. To take it back, apply what was requested before.")
	case r.Stage == apply.Failing:
		return cli.Hintf(fmt.Errorf("the kubelet could not do the resize: %s", r.Message),
			"It goes on trying. To take it back, apply what was requested before.")
	case r.Stage == apply.Infeasible:
		return cli.Hintf(fmt.Errorf("the kubelet will not do the resize: %s", r.Message),
			"Its containers go on as they were, but the pod's spec says otherwise: apply what was requested before.")
	case r.TimedOut:
		return cli.Hintf(errors.New("time is up, and the resize is not done"), "The kubelet goes on. `kubectl get pod -o yaml` shows the conditions; --timeout allows it more.")
	}
	return fmt.Errorf("the resize was not done: %s", r.Message)
}

// readCgroups reads the inspector's report: the cgroups of the pod of a UID.
func readCgroups(report json.RawMessage, uid string) ([]apply.Cgroup, error) {
	var r inspect.Report
	if err := json.Unmarshal(report, &r); err != nil {
		return nil, fmt.Errorf("read the report on pod cgroups: %w", err)
	}
	of := func(j *inspect.CgroupReport, container string, pod bool) apply.Cgroup {
		c := apply.Cgroup{Path: string(j.Path), Container: container, Pod: pod}
		if l := j.Limits; l != nil {
			c.Shares, c.Weight, c.Quota, c.Period, c.MemoryLimit = l.Shares, l.Weight, l.Quota, l.Period, l.Memory
		}
		return c
	}
	var found []apply.Cgroup
	for i := range r.Pods {
		p := &r.Pods[i]
		if string(p.UID) != uid {
			continue
		}
		if p.Driver != "" { // it is a pod's, not a stray container's
			found = append(found, of(&p.CgroupReport, "", true))
		}
		for j := range p.Containers {
			if c := &p.Containers[j]; c.Name != "" && !c.Judgement.Leftover() {
				found = append(found, of(&c.CgroupReport, c.Name, false))
			}
		}
	}
	return found, nil
}
