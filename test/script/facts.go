package script

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// learn returns the facts that lines tell.
func learn(input string, synced bool) (*cluster.Facts, error) {
	c := cluster.Change{Synced: synced, At: transcript.Epoch}
	pods := map[metric.PodRef]*cluster.Pod{}
	for _, line := range transcript.Lines(input) {
		words := strings.Fields(line)
		if len(words) < 2 {
			return nil, fmt.Errorf("%q: name what the fact is about", line)
		}
		attrs := map[string]string{}
		for _, word := range words[2:] {
			k, v, _ := strings.Cut(word, "=")
			attrs[k] = v
		}
		var err error
		switch words[0] {
		case "node":
			n := &cluster.Node{Name: metric.NodeName(words[1])}
			c.Nodes = append(c.Nodes, n)
			err = fillNode(n, attrs)
		case "pod":
			e := transcript.Entity("", words[1])
			p := &cluster.Pod{PodRef: e.PodRef(), Node: "n1", Phase: cluster.Running}
			pods[p.PodRef] = p
			c.Pods = append(c.Pods, p)
			err = fillPod(p, attrs)
		case "container":
			e := transcript.Entity("", words[1])
			p := pods[e.PodRef()]
			if p == nil {
				return nil, fmt.Errorf("%q: name its pod first", line)
			}
			p.Containers = append(p.Containers, cluster.Container{Name: e.Name, State: cluster.StateRunning})
			err = fillContainer(&p.Containers[len(p.Containers)-1], attrs)
		default:
			err = fmt.Errorf("want node, pod or container")
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	var none *cluster.Facts
	return none.With(c), nil
}

func fillNode(n *cluster.Node, attrs map[string]string) error {
	_, notReady := attrs["notready"]
	n.Ready = !notReady
	for key, v := range attrs {
		var id metric.ID
		parse := transcript.Bytes
		switch key {
		case "cpu":
			id, parse = metric.CPUNodeCapacity, cores
		case "free-cpu":
			id, parse = metric.CPUNodeAllocatable, cores
		case "mem":
			id = metric.MemoryNodeCapacity
		case "free-mem":
			id = metric.MemoryNodeAllocatable
		case "disk":
			id = metric.EphemeralStorageNodeAllocatable
		case "notready":
			continue
		default:
			return fmt.Errorf("unknown attribute %q", key)
		}
		x, err := parse(v)
		if err != nil {
			return err
		}
		n.Spec.Set(id, x)
	}
	return nil
}

func fillPod(p *cluster.Pod, attrs map[string]string) (err error) {
	for key, v := range attrs {
		switch key {
		case "uid":
			p.UID = metric.PodUID(v)
		case "node":
			p.Node = metric.NodeName(v)
		case "phase":
			p.Phase = cluster.Phase(v)
		case "hostnet":
			p.HostNetwork = true
		case "deleted":
			p.Deleted = transcript.Epoch
		case "started":
			p.Started, err = transcript.Moment(v)
		default:
			err = ask(&p.Spec, key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fillContainer(c *cluster.Container, attrs map[string]string) (err error) {
	for key, v := range attrs {
		switch key {
		case "waiting":
			c.State = cluster.StateWaiting
		case "terminated":
			c.State = cluster.StateTerminated
		case "init":
			c.Role = cluster.Init
		case "sidecar":
			c.Role = cluster.Sidecar
		case "ephemeral":
			c.Role = cluster.Ephemeral
		case "why":
			c.Previous = &cluster.PreviousRun{StateReason: v}
		case "id":
			c.ID = metric.ContainerID(v)
		case "started":
			c.StartedAt, err = transcript.Moment(v)
		default:
			err = ask(&c.Spec, key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ask reads cpu=100m/200m: a request and a limit, either of which may be empty.
func ask(v *cluster.Requirements, key, amounts string) error {
	var request, limit metric.ID
	parse := transcript.Bytes
	switch key {
	case "cpu":
		request, limit, parse = metric.CPURequest, metric.CPULimit, cores
	case "mem":
		request, limit = metric.MemoryRequest, metric.MemoryLimit
	case "disk":
		request, limit = metric.EphemeralStorageRequest, metric.EphemeralStorageLimit
	case "gpu":
		request = metric.AcceleratorRequest
	default:
		return fmt.Errorf("unknown attribute %q", key)
	}
	asked, limited, _ := strings.Cut(amounts, "/")
	for _, a := range [...]struct {
		id metric.ID
		v  string
	}{{request, asked}, {limit, limited}} {
		if a.v == "" {
			continue
		}
		x, err := parse(a.v)
		if err != nil {
			return err
		}
		v.Set(a.id, x)
	}
	return nil
}
