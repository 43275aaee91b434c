// Package transcript is the language of the pipeline's transcripts. Files in
// testdata contain prose, commands and their exact output. go test -rewrite
// writes the output again, and the diff is reviewed.
//
// Commands:
//
//	source interval=15s clock=1ms cores=4 node=n1 [exhaustive] [keep-facts]
//	    a new source and pipeline, without facts unless keep-facts is set; this command is the first in a file
//	facts [at=0s] [unsynced]
//	    node n1 [notready] [cpu=4] [mem=8Gi] [disk=10Gi] [free-cpu=3] [free-mem=7Gi]
//	    pod shop/web [uid=u1] [node=n1] [phase=Running] [started=-5m] [deleted] [qos=Burstable] [hash=…] [mirror] [known=-5m] [hostnet] [cpu=50m/100m] [mem=…]
//	    container shop/web/app [id=c1] [waiting|terminated] [why=…] [started=-5m] [last=c0] [last-started=-10m] [ended=-5m] [init|sidecar|ephemeral] [cpu=100m/200m] [mem=64Mi/128Mi] [disk=…] [gpu=1]
//	    all facts of the API server from now on; amounts are request/limit, free- is allocatable
//	observe at=15s [date=15s]
//	    shop/web/app [uid=] [id=] [path=] [inode=] [start=-5m] [cpu=10s] [mem=10Mi] [procs=1] [time=14s] [runtime|mtime]
//	    shop/web [rx=1000]   a pod;   node [cpu=]   the node;   system/kubelet   a system container;   shop/web[interface:eth0]   a part
//	    second …             a line of the node's cross-check
//	    counters, as a source reads them
//	rated [at=15s]
//	    shop/web/app cpu=250m mem=10Mi [rss=8Mi] [rx=5] [window=15s] [last-known] [ambiguous] [rejected=OldPod [rule=uid]]
//	    cpu=FirstSample, a reason instead of a number, is a group without numbers;
//	    absent, with only reasons, is an entity with verdicts but no sample
//	    (for a bound: cpu=OverLimit [bound=8])
//	    samples with rates and reasons, as after identity and rate, so that every
//	    combination can be written. A second pipeline gets them in reverse order,
//	    and its output must be the same
//	fail at=30s NodeTimeout
//	    a read that failed; its lines are the counters that it still returned
//	failed [at=30s] NodeTimeout
//	    the same, with lines as in rated
//
// date= is the time that the node's clock shows, rounded down to the second as
// in HTTP. The output begins with "asks for a second read" if identity wants a
// cross-check. The observation says whether there is one.
//
// Times are offsets from an epoch. A sample's time is that of the observation
// by default.
//
// facts.go parses facts, sample.go samples, and notation.go times, names and
// amounts. describe.go writes the output.
package transcript

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// Processor is a step of the pipeline that is tested.
type Processor interface {
	Process(facts *cluster.Facts, b *metric.Batch, now time.Time)
}

// crossChecker is a Processor that may want a cross-check.
type crossChecker interface {
	NeedsCrossCheck(facts *cluster.Facts, b *metric.Batch, now time.Time) bool
}

// Epoch is the time that offsets are relative to.
var Epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Run runs every file in dir, each with its own pipelines.
func Run(t *testing.T, dir string, pipeline func() []Processor) {
	t.Helper()
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
	pipeline          func() []Processor
	forward, backward run
	facts             *cluster.Facts
}

// run is a pipeline and the batch that passes through it.
type run struct {
	steps []Processor
	batch *metric.Batch
}

func (s *session) run(d *datadriven.TestData) (string, error) {
	args := map[string]string{}
	for _, a := range d.CmdArgs {
		args[a.Key] = strings.Join(a.Vals, ",")
	}
	switch d.Cmd {
	case "source":
		return "", s.open(args)
	case "facts":
		var err error
		s.facts, err = parseFacts(args, d.Input)
		return "", err
	case "observe", "fail":
		return s.forward.observe(s.facts, args, Lines(d.Input), addCounters)
	case "rated", "failed":
		given := Lines(d.Input)
		out, err := s.forward.observe(s.facts, args, given, addRates)
		if err != nil {
			return "", err
		}
		slices.Reverse(given)
		reversed, err := s.backward.observe(s.facts, args, given, addRates)
		if err == nil && out != reversed {
			err = fmt.Errorf("reported in reverse, the same comes out as:\n%s", reversed)
		}
		return out, err
	}
	return "", fmt.Errorf("unknown command %q", d.Cmd)
}

// open starts a new source.
func (s *session) open(args map[string]string) error {
	interval, err := time.ParseDuration(cmp.Or(args["interval"], "15s"))
	if err != nil {
		return err
	}
	clock, err := time.ParseDuration(cmp.Or(args["clock"], "1ms"))
	if err != nil {
		return err
	}
	cores, err := strconv.ParseFloat(cmp.Or(args["cores"], "0"), 64)
	if err != nil {
		return err
	}
	_, exhaustive := args["exhaustive"]
	for _, r := range []*run{&s.forward, &s.backward} {
		*r = run{steps: s.pipeline(), batch: &metric.Batch{
			Source: "test", Node: metric.NodeName(cmp.Or(args["node"], "n1")),
			Interval: interval, Resolution: clock, Cores: cores, Exhaustive: exhaustive,
		}}
	}
	if _, keep := args["keep-facts"]; !keep {
		s.facts = nil
	}
	return nil
}

// observe passes a read of the source through the pipeline and returns the
// result as text.
func (r *run) observe(facts *cluster.Facts, args map[string]string, given []string, add func(*metric.Batch, string, time.Time) error) (string, error) {
	now, err := Moment(cmp.Or(args["at"], "0s"))
	if err != nil {
		return "", err
	}
	b := r.batch
	b.Reset()
	b.Began, b.Ended = now, now
	for key, v := range args {
		switch reason, isReason := metric.ParseReason(key); {
		case key == "at":
		case key == "date":
			date, err := Moment(v)
			if err != nil {
				return "", err
			}
			b.NodeTime = date.Truncate(time.Second).UnixNano()
		case isReason:
			b.Err = &metric.ReadError{Reason: reason, Err: errors.New("as the transcript says")}
		default:
			return "", fmt.Errorf("unknown argument %q", key)
		}
	}
	second := &metric.Batch{Node: b.Node}
	for _, line := range given {
		to := b
		if rest, ok := strings.CutPrefix(line, "second "); ok {
			to, line = second, rest
		}
		if err := add(to, line, now); err != nil {
			return "", fmt.Errorf("%q: %w", line, err)
		}
	}
	if len(second.Samples) > 0 {
		b.CrossCheck = second
	}
	asked := ""
	for _, step := range r.steps {
		if c, ok := step.(crossChecker); ok && c.NeedsCrossCheck(facts, b, now) {
			asked = "asks for a second read\n"
		}
		step.Process(facts, b, now)
	}
	return asked + Describe(b), nil
}
