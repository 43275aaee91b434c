package script

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// number says how an attribute of a sample is read.
type number struct {
	id    metric.ID
	parse func(string) (float64, error)
}

var numbers = map[string]number{
	"cpu":   {metric.CPUUsageRate, cores},
	"mem":   {metric.MemoryWorkingSet, transcript.Bytes},
	"rss":   {metric.MemoryRSS, transcript.Bytes},
	"usage": {metric.MemoryUsage, transcript.Bytes},
	"rx":    {metric.NetworkRxRate, transcript.Bytes},
	"disk":  {metric.EphemeralStorageUsage, transcript.Bytes},
	"cap":   {metric.CPUNodeCapacity, cores},
	"limit": {metric.CPULimit, cores},
}

// addSample adds to b what a line of an observation says.
func addSample(b *metric.Batch, line string, now time.Time) error {
	words := strings.Fields(line)
	s := b.Add(transcript.Entity(b.Node, words[0]))
	s.Instance.Origin = metric.StartReported
	at, window := now, 15*time.Second
	rejected, held, ambiguous, absent := metric.Unjudged, false, false, false
	rule := ""
	var given []metric.Group
	for _, word := range words[1:] {
		key, v, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "time":
			at, err = transcript.Moment(v)
		case "window":
			window, err = time.ParseDuration(v)
		case "uid":
			s.Instance.UID = metric.PodUID(v)
		case "id":
			s.Instance.ID = metric.ContainerID(v)
		case "start":
			var start time.Time
			start, err = transcript.Moment(v)
			s.Instance.Start = start.UnixNano()
		case "mtime":
			s.Instance.Origin = metric.StartCgroup
		case "held":
			held = true
		case "ambiguous":
			ambiguous = true
		case "absent":
			absent = true
		case "rejected":
			rejected, _ = metric.ParseReason(v)
		case "bound":
			var x float64
			x, err = transcript.Bytes(v)
			for i := range b.Verdicts {
				if o := &b.Verdicts[i]; o.Entity == s.Entity && o.Reason == metric.OverLimit {
					o.Evidence.Limit = x
				}
			}
		case "rule":
			rule = strings.ReplaceAll(v, "_", " ")
		default:
			n, ok := numbers[key]
			if !ok {
				return fmt.Errorf("unknown attribute %q", key)
			}
			g := n.id.Describe().Group
			given = append(given, g)
			s.Reasons[g] = metric.Measured
			if reason, isReason := metric.ParseReason(v); isReason {
				s.Reasons[g] = reason
				b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: s.Entity, Instance: s.Instance, Group: g, Reason: reason})
				break
			}
			var x float64
			x, err = n.parse(v)
			s.Values.Set(n.id, x)
		}
		if err != nil {
			return err
		}
	}
	if absent {
		b.Samples = b.Samples[:len(b.Samples)-1]
		return nil
	}
	for _, g := range given {
		s.Times[g] = at.UnixNano()
		if s.Reasons[g] != metric.Measured {
			continue
		}
		if g == metric.CPU {
			s.Rates[g] = metric.Window{End: at.UnixNano(), Length: window}
		}
		if ambiguous {
			s.Reasons[g] = metric.Ambiguous
		}
		if held {
			s.LastKnown |= 1 << g
		}
	}
	if rejected != metric.Unjudged {
		s.Reject(rejected)
		v := metric.Verdict{Entity: s.Entity, Instance: s.Instance, Group: metric.CPU, Reason: rejected}
		if rule != "" {
			v.Evidence = metric.Evidence{Rule: rule, Got: metric.CounterReading{ID: s.Instance.ID, UID: s.Instance.UID}}
		}
		b.Verdicts = append(b.Verdicts, v)
	}
	return nil
}
