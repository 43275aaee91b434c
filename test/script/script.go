// Package script is the language in which the behaviour of enrich and aggregate
// is written down and tested. It begins where test/transcript ends: samples
// come with their rates and reasons, as identity and rate leave them, so that
// every combination can be written. Files are prose, commands and their exact
// output; go test -rewrite writes the output anew.
//
// Commands:
//
//	source [exhaustive] [node=n1] [interval=15s]
//	    a new source and pipeline; comes first
//	facts [unsynced]
//	    node n1 [notready] [cpu=4] [mem=8Gi] [disk=10Gi] [free-cpu=3] [free-mem=7Gi]
//	    pod shop/web [phase=Running] [node=n1] [uid=u1] [started=-5m] [deleted] [hostnet] [cpu=50m/100m] [mem=…]
//	    container shop/web/app [waiting|terminated] [why=…] [init|sidecar|ephemeral] [started=-5m] [cpu=100m/200m] [mem=64Mi/128Mi] [disk=…] [gpu=1]
//	    everything the API server says from now on; amounts are request/limit, free- is what is allocatable
//	observe [at=15s] [error=NodeTimeout]
//	    shop/web/app cpu=250m mem=10Mi [rss=8Mi] [time=14s] [window=15s] [uid=u1] [start=-1h] [mtime] [held] [ambiguous] [rejected=OldPod [rule=uid]]
//	    cpu=FirstSample, a reason in a number's place, is a group without numbers;
//	    absent, with reasons only, is an entity without a sample that has verdicts
//	    (of a bound: cpu=OverLimit [bound=8])
//	    shop/web [rx=5]   a pod;   node [cpu=…]   the node;   shop/web[interface:eth0] [rx=5]   a part
//
// Each observation is also put, in reverse order, to a second pipeline, whose
// output must be the same.
package script

import (
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
	"github.com/weir-metrics/weir/test/transcript"
)

// Run runs every file in dir, each with pipelines of its own.
func Run(t *testing.T, dir string, pipeline func() []transcript.Processor) {
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
	pipeline        func() []transcript.Processor
	forth, back     []transcript.Processor
	batch, reversed metric.Batch
	facts           *cluster.Facts
}

func (s *session) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "source":
		s.forth, s.back = s.pipeline(), s.pipeline()
		node, interval := "n1", time.Duration(0)
		for _, arg := range d.CmdArgs {
			switch {
			case len(arg.Vals) != 1:
			case arg.Key == "node":
				node = arg.Vals[0]
			case arg.Key == "interval":
				var err error
				if interval, err = time.ParseDuration(arg.Vals[0]); err != nil {
					return "", fmt.Errorf("interval: %w", err)
				}
			}
		}
		for _, b := range []*metric.Batch{&s.batch, &s.reversed} {
			*b = metric.Batch{Source: "test", Node: metric.NodeName(node), Interval: interval, Exhaustive: d.HasArg("exhaustive"), Resolution: time.Millisecond}
		}
		return "", nil
	case "facts":
		facts, err := learn(d.Input, !d.HasArg("unsynced"))
		s.facts = facts
		return "", err
	case "observe":
		lines := transcript.Lines(d.Input)
		out, err := s.observe(d, lines, &s.batch, s.forth)
		if err != nil {
			return "", err
		}
		slices.Reverse(lines)
		backwards, err := s.observe(d, lines, &s.reversed, s.back)
		if err == nil && out != backwards {
			err = fmt.Errorf("reported in reverse, the same comes out as:\n%s", backwards)
		}
		return out, err
	}
	return "", fmt.Errorf("unknown command %q", d.Cmd)
}

func (s *session) observe(d *datadriven.TestData, lines []string, b *metric.Batch, steps []transcript.Processor) (string, error) {
	now := transcript.Epoch
	b.Reset()
	for _, arg := range d.CmdArgs {
		var err error
		switch arg.Key {
		case "at":
			now, err = transcript.Moment(arg.Vals[0])
		case "error":
			reason, ok := metric.ParseReason(arg.Vals[0])
			if !ok {
				err = fmt.Errorf("no reason %q", arg.Vals[0])
			}
			b.Err = &metric.ReadError{Reason: reason, Err: errors.New("it broke")}
		default:
			err = fmt.Errorf("unknown argument %q", arg.Key)
		}
		if err != nil {
			return "", err
		}
	}
	b.Began, b.Ended = now, now
	for _, line := range lines {
		if err := addSample(b, line, now); err != nil {
			return "", fmt.Errorf("%q: %w", line, err)
		}
	}
	for _, step := range steps {
		step.Process(s.facts, b, now)
	}
	return describe(b), nil
}

// cores reads 250m or 2 as nanocores.
func cores(v string) (float64, error) {
	milli, isMilli := strings.CutSuffix(v, "m")
	n, err := strconv.ParseFloat(milli, 64)
	if isMilli {
		return n * 1e6, err
	}
	return n * 1e9, err
}
