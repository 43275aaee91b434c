package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// parseFacts parses the input of the command facts.
func parseFacts(args map[string]string, input string) (*cluster.Facts, error) {
	at, err := Moment(cmp.Or(args["at"], "0s"))
	if err != nil {
		return nil, err
	}
	_, unsynced := args["unsynced"]
	c := cluster.FactsChange{Synced: !unsynced, At: at}
	pods := map[metric.PodRef]*cluster.Pod{}
	for _, line := range Lines(input) {
		kind, rest, _ := strings.Cut(line, " ")
		name, attrs := fields(rest)
		switch kind {
		case "node":
			n := &cluster.Node{Name: metric.NodeName(name), Ready: true}
			c.Nodes = append(c.Nodes, n)
			err = fillNode(n, attrs)
		case "pod":
			p := &cluster.Pod{PodRef: Entity("", name).PodRef(), Node: "n1", Phase: cluster.Running, KnownAt: at}
			pods[p.PodRef] = p
			c.Pods = append(c.Pods, p)
			err = fillPod(p, attrs)
		case "container":
			e := Entity("", name)
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
	for key, v := range attrs {
		var id metric.ID
		parse := Bytes
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
			n.Ready = false
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
		case "hash":
			p.ConfigHash = cluster.NewConfigHash(metric.PodUID(v))
		case "node":
			p.Node = metric.NodeName(v)
		case "phase":
			p.Phase = cluster.Phase(v)
		case "qos":
			p.QoS = v
		case "mirror":
			p.Mirror = true
		case "hostnet":
			p.HostNetwork = true
		case "deleted":
			p.Deleted = Epoch
		case "started":
			p.Started, err = Moment(v)
		case "known":
			p.KnownAt, err = Moment(v)
		default:
			err = addRequirement(&p.Spec, key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fillContainer(c *cluster.Container, attrs map[string]string) (err error) {
	var past cluster.PreviousRun
	for key, v := range attrs {
		switch key {
		case "last":
			past.LastID = metric.ContainerID(v)
		case "why":
			past.StateReason = v
		case "end-reason":
			past.EndReason = v
		case "exit-code":
			_, err = fmt.Sscan(v, &past.ExitCode)
		case "last-started":
			past.StartedAt, err = Moment(v)
		case "ended":
			past.EndedAt, err = Moment(v)
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
		case "id":
			c.ID = metric.ContainerID(v)
		case "started":
			c.StartedAt, err = Moment(v)
		default:
			err = addRequirement(&c.Spec, key, v)
		}
		if err != nil {
			return err
		}
	}
	c.Previous = past.OrNil()
	return nil
}

// addRequirement parses cpu=100m/200m: a request and a limit. Either may be
// empty.
func addRequirement(v *cluster.Requirements, key, amounts string) error {
	var request, limit metric.ID
	parse := Bytes
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
	requested, limited, _ := strings.Cut(amounts, "/")
	for _, a := range [...]struct {
		id   metric.ID
		text string
	}{{request, requested}, {limit, limited}} {
		if a.text == "" {
			continue
		}
		x, err := parse(a.text)
		if err != nil {
			return err
		}
		v.Set(a.id, x)
	}
	return nil
}
