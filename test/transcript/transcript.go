// Package transcript is the language in which the pipeline's behaviour is
// written down and tested: observe, fail, learn facts, and read every value and
// verdict. Files in testdata are prose, commands and their exact output;
// go test -rewrite writes the output anew, and the diff is what gets reviewed.
//
// Commands:
//
//	source interval=15s clock=1ms cores=4 node=n1 [exhaustive]
//	    a new source and pipeline, and no facts; the line comes first in a file
//	facts at=0s
//	    pod shop/web uid=u1 [node=n1] [phase=Running] [started=-5m] [qos=Burstable] [hash=…] [mirror] [known=-5m] [hostnet]
//	    container shop/web/app [id=c1] [state=running|waiting|terminated] [started=-5m] [last=c0] [role=sidecar|init|ephemeral]
//	    everything the API server says from now on
//	observe at=15s [date=15s]
//	    shop/web/app [uid=] [id=] [path=] [start=-5m] [cpu=10s] [mem=10Mi] [procs=1] [time=14s] [runtime|mtime]
//	    shop/web [rx=1000]   a pod;   node [cpu=]   the node;   system/kubelet   a system container
//	    witness …            a line of the second view
//	fail at=30s NodeTimeout
//	    a read that gave nothing
//
// date= is what the node says its clock shows, cut to the second as HTTP does.
// The output begins with "asks for a witness" where identity would have one read;
// whether there is one is up to the observation.
//
// Times are offsets from an epoch; a sample's time is that of the observation
// unless given.
package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Processor is a step of the pipeline under test.
type Processor interface {
	Process(facts *cluster.Facts, b *metric.Batch, now time.Time)
}

// crossChecker is a Processor that may want a witness.
type crossChecker interface {
	NeedsCrossCheck(facts *cluster.Facts, b *metric.Batch, now time.Time) bool
}

// Epoch is the moment all offsets count from.
var Epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Run runs every file in dir, each with a pipeline of its own.
func Run(t *testing.T, dir string, pipeline func() []Processor) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		s := &session{pipeline: pipeline}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

type session struct {
	pipeline func() []Processor
	steps    []Processor
	batch    metric.Batch
	facts    *cluster.Facts
}

func (s *session) run(d *datadriven.TestData) (string, error) {
	args := parseArgs(d)
	switch d.Cmd {
	case "source":
		s.steps, s.facts = s.pipeline(), nil
		s.batch = metric.Batch{Source: "test", Node: metric.NodeName(or(args["node"], "n1")), Interval: 15 * time.Second, Resolution: time.Millisecond}
		for key, set := range map[string]func(string) error{
			"interval": func(v string) (err error) { s.batch.Interval, err = time.ParseDuration(v); return err },
			"clock":    func(v string) (err error) { s.batch.Resolution, err = time.ParseDuration(v); return err },
			"cores":    func(v string) (err error) { s.batch.Cores, err = strconv.ParseFloat(v, 64); return err },
		} {
			if v, ok := args[key]; ok {
				if err := set(v); err != nil {
					return "", err
				}
			}
		}
		_, s.batch.Exhaustive = args["exhaustive"]
		return "", nil
	case "facts":
		return "", s.learn(args, d.Input)
	case "observe", "fail":
		now, err := Moment(args["at"])
		if err != nil {
			return "", err
		}
		b := &s.batch
		b.Reset()
		b.Began, b.Ended = now, now
		if v, ok := args["date"]; ok {
			date, err := Moment(v)
			if err != nil {
				return "", err
			}
			b.NodeTime = date.Truncate(time.Second).UnixNano()
		}
		if d.Cmd == "fail" {
			for _, a := range d.CmdArgs {
				if r, ok := metric.ParseReason(a.Key); ok {
					b.Err = &metric.ReadError{Reason: r, Err: errors.New("as the transcript says")}
				}
			}
		}
		witness := &metric.Batch{}
		for _, line := range Lines(d.Input) {
			to := b
			if rest, ok := strings.CutPrefix(line, "witness "); ok {
				to, line = witness, rest
			}
			if err := observe(to, b.Node, line, now); err != nil {
				return "", fmt.Errorf("%q: %w", line, err)
			}
		}
		if len(witness.Samples) > 0 {
			b.CrossCheck = witness
		}
		asked := ""
		for _, p := range s.steps {
			if d, ok := p.(crossChecker); ok && d.NeedsCrossCheck(s.facts, b, now) {
				asked = "asks for a witness\n"
			}
			p.Process(s.facts, b, now)
		}
		return asked + Describe(b), nil
	}
	return "", fmt.Errorf("unknown command %q", d.Cmd)
}

func parseArgs(d *datadriven.TestData) map[string]string {
	args := map[string]string{}
	for _, a := range d.CmdArgs {
		args[a.Key] = strings.Join(a.Vals, ",")
	}
	return args
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// fields splits "name key=value flag" into the name and its attributes.
func fields(line string) (name string, attrs map[string]string) {
	attrs = map[string]string{}
	for i, f := range strings.Fields(line) {
		if i == 0 {
			name = f
			continue
		}
		k, v, _ := strings.Cut(f, "=")
		attrs[k] = v
	}
	return name, attrs
}

func observe(b *metric.Batch, node metric.NodeName, line string, now time.Time) error {
	name, attrs := fields(line)
	s := b.Add(Entity(node, name))
	at := now
	if v, ok := attrs["time"]; ok {
		var err error
		if at, err = Moment(v); err != nil {
			return err
		}
	}
	i := &s.Instance
	i.Origin = metric.StartReported
	for key, v := range attrs {
		switch key {
		case "time":
		case "uid":
			i.UID = metric.PodUID(v)
		case "id":
			i.ID = metric.ContainerID(v)
		case "path":
			i.Path = metric.CgroupPath(v)
		case "inode":
			n, err := strconv.ParseUint(v, 10, 64)
			if err != nil {
				return err
			}
			i.Inode = n
		case "start":
			start, err := Moment(v)
			if err != nil {
				return err
			}
			i.Start = start.UnixNano()
		case "mtime":
			i.Origin = metric.StartCgroup
		case "runtime":
			i.Origin = metric.StartRuntime
		case "procs":
			n, err := strconv.Atoi(v)
			if err != nil {
				return err
			}
			i.Processes = int32(n)
		case "cpu":
			used, err := time.ParseDuration(v)
			if err != nil {
				return err
			}
			s.Values.Set(metric.CPUUsage, float64(used))
			s.Times[metric.CPU] = at.UnixNano()
		case "cores": // a rate given by the node
			n, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return err
			}
			s.Values.Set(metric.CPUUsageRate, n*1e9)
			s.Times[metric.CPU] = at.UnixNano()
			s.Rates[metric.CPU] = metric.Window{End: at.UnixNano()}
		case "mem":
			n, err := Bytes(v)
			if err != nil {
				return err
			}
			s.Values.Set(metric.MemoryWorkingSet, n)
			s.Times[metric.Memory] = at.UnixNano()
		case "rx":
			n, err := Bytes(v)
			if err != nil {
				return err
			}
			s.Values.Set(metric.NetworkRx, n)
			s.Times[metric.Network] = at.UnixNano()
		case "received":
			s.Received = 1<<metric.CPU | 1<<metric.Memory | 1<<metric.Network
		default:
			return fmt.Errorf("unknown attribute %q", key)
		}
	}
	return nil
}

func (s *session) learn(args map[string]string, input string) error {
	at, err := Moment(or(args["at"], "0s"))
	if err != nil {
		return err
	}
	pods := map[metric.PodRef]*cluster.Pod{}
	var order []*cluster.Pod
	for _, line := range Lines(input) {
		kind, rest, _ := strings.Cut(line, " ")
		name, attrs := fields(rest)
		e := Entity("", name)
		switch kind {
		case "pod":
			p := &cluster.Pod{PodRef: e.PodRef(), UID: metric.PodUID(attrs["uid"]), ConfigHash: cluster.NewConfigHash(metric.PodUID(attrs["hash"])),
				Node: metric.NodeName(or(attrs["node"], "n1")), Phase: cluster.Phase(or(attrs["phase"], "Running")), QoS: attrs["qos"]}
			_, p.Mirror = attrs["mirror"]
			_, p.HostNetwork = attrs["hostnet"]
			if p.KnownAt, err = Moment(or(attrs["known"], or(args["at"], "0s"))); err != nil {
				return err
			}
			if v := attrs["started"]; v != "" {
				if p.Started, err = Moment(v); err != nil {
					return err
				}
			}
			pods[p.PodRef] = p
			order = append(order, p)
		case "container":
			p := pods[e.PodRef()]
			if p == nil {
				return fmt.Errorf("%q: name its pod first", line)
			}
			c := cluster.Container{Name: e.Name, ID: metric.ContainerID(attrs["id"]), Previous: cluster.NewPreviousRun(metric.ContainerID(attrs["last"]), time.Time{}, attrs["why"])}
			c.State = map[string]cluster.State{"": cluster.StateRunning, "running": cluster.StateRunning, "waiting": cluster.StateWaiting, "terminated": cluster.StateTerminated}[attrs["state"]]
			c.Role = map[string]cluster.Role{"sidecar": cluster.Sidecar, "init": cluster.Init, "ephemeral": cluster.Ephemeral}[attrs["role"]]
			if v := attrs["started"]; v != "" {
				if c.StartedAt, err = Moment(v); err != nil {
					return err
				}
			}
			p.Containers = append(p.Containers, c)
		default:
			return fmt.Errorf("%q: want pod or container", line)
		}
	}
	s.facts = s.facts.With(cluster.Change{Synced: true, At: at, Pods: order, GonePods: s.goneSince(pods)})
	return nil
}

// goneSince returns the pods that were known and are not in pods.
func (s *session) goneSince(pods map[metric.PodRef]*cluster.Pod) (gone []metric.PodRef) {
	for _, node := range []metric.NodeName{"n1", "n2", "n3"} {
		for _, p := range s.facts.PodsOn(node) {
			if pods[p.PodRef] == nil {
				gone = append(gone, p.PodRef)
			}
		}
	}
	return gone
}
