package ui

import (
	"fmt"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// instance is a run of something that went by its name: the one that is counted,
// or one that was turned away.
type instance struct {
	Of      string // the container's name; "pod" for its own cgroup or sandbox
	State   state
	Reason  string
	Facts   []fact
	Message string
	Rule    string
	Since   moment
	Advice  string
}

// counted adds the instance whose numbers are served.
func (t *thing) counted(of string, s *metric.Sample) {
	in := instance{Of: clean(of), State: state{"counted", good}}
	for _, g := range []metric.Group{metric.CPU, metric.Memory} {
		if s.Reasons[g] == metric.Ambiguous {
			in.State, in.Reason = state{"chosen", warn}, metric.Ambiguous.String()
		}
	}
	i := &s.Instance
	in.Facts = identity("", i.UID, i.ID, i.Path)
	if at := i.StartTime(); !at.IsZero() {
		in.Facts = append([]fact{{Name: "started", Value: at.UTC().Format("2006-01-02T15:04:05.000Z")}}, in.Facts...)
	}
	if i.Processes >= 0 {
		in.Facts = append(in.Facts, fact{Name: "processes", Value: fmt.Sprint(i.Processes)})
	}
	t.Instances = append(t.Instances, in)
}

// rivals adds the instances that were turned away.
func (p *page) rivals(t *thing, of string, rivals []explain.Rival) {
	for i := range rivals {
		r := &rivals[i]
		in := instance{
			Of: clean(of), State: state{"turned away", quiet}, Reason: r.Reason, Rule: r.Rule, Message: r.Message,
			Since: when(r.Since, p.Now), Advice: r.Advice, Facts: identity(r.Node, r.UID, r.ID, r.Path),
		}
		if !r.Started.IsZero() {
			in.Facts = append([]fact{{Name: "started", Value: r.Started.UTC().Format("2006-01-02T15:04:05.000Z")}}, in.Facts...)
		}
		t.Instances = append(t.Instances, in)
	}
}

// identity returns what tells an instance from others.
func identity(node metric.NodeName, uid metric.PodUID, id metric.ContainerID, path metric.CgroupPath) (facts []fact) {
	for _, f := range []fact{{"node", string(node), ""}, {"UID", string(uid), ""}, {"ID", string(id), ""}, {"cgroup", string(path), ""}} {
		if f.Value != "" {
			f.Value = clean(f.Value)
			facts = append(facts, f)
		}
	}
	return facts
}
