package transcript

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// value is the metric of an attribute, with its parser.
type value struct {
	id    metric.ID
	parse func(string) (float64, error)
}

// counters are the values of a sample as a source reads it; rates are those of
// a sample after the step rate.
var (
	counters = map[string]value{
		"cpu":   {metric.CPUUsage, func(v string) (float64, error) { d, err := time.ParseDuration(v); return float64(d), err }},
		"cores": {metric.CPUUsageRate, cores}, // a rate that the node reports
		"mem":   {metric.MemoryWorkingSet, Bytes},
		"rx":    {metric.NetworkRx, Bytes},
	}
	rates = map[string]value{
		"cpu":   {metric.CPUUsageRate, cores},
		"mem":   {metric.MemoryWorkingSet, Bytes},
		"rss":   {metric.MemoryRSS, Bytes},
		"usage": {metric.MemoryUsage, Bytes},
		"rx":    {metric.NetworkRxRate, Bytes},
		"disk":  {metric.EphemeralStorageUsage, Bytes},
		"cap":   {metric.CPUNodeCapacity, cores},
		"limit": {metric.CPULimit, cores},
	}
)

// addSample adds to b the sample of a line, with its instance. It returns the
// line's other attributes and the sample's time.
func addSample(b *metric.Batch, line string, now time.Time) (s *metric.Sample, rest map[string]string, at time.Time, err error) {
	name, attrs := fields(line)
	s, at = b.Add(Entity(b.Node, name)), now
	rest = maps.Clone(attrs)
	i := &s.Instance
	i.Origin = metric.StartReported
	for key, v := range attrs {
		delete(rest, key)
		switch key {
		case "time":
			at, err = Moment(v)
		case "uid":
			i.UID = metric.PodUID(v)
		case "id":
			i.ID = metric.ContainerID(v)
		case "path":
			i.Path = metric.CgroupPath(v)
		case "inode":
			i.Inode, err = strconv.ParseUint(v, 10, 64)
		case "start":
			var start time.Time
			start, err = Moment(v)
			i.Start = start.UnixNano()
		case "mtime":
			i.Origin = metric.StartCgroup
		case "runtime":
			i.Origin = metric.StartRuntime
		case "procs":
			var n int64
			n, err = strconv.ParseInt(v, 10, 32)
			i.Processes = int32(n)
		case "received":
			s.Received = 1<<metric.CPU | 1<<metric.Memory | 1<<metric.Network
		default:
			rest[key] = v
		}
		if err != nil {
			return nil, nil, at, fmt.Errorf("%s: %w", key, err)
		}
	}
	return s, rest, at, nil
}

// addCounters adds to b the sample of a line of observe.
func addCounters(b *metric.Batch, line string, now time.Time) error {
	s, attrs, at, err := addSample(b, line, now)
	if err != nil {
		return err
	}
	for key, text := range attrs {
		v, ok := counters[key]
		if !ok {
			return fmt.Errorf("unknown attribute %q", key)
		}
		x, err := v.parse(text)
		if err != nil {
			return err
		}
		s.Values.Set(v.id, x)
		g := v.id.Describe().Group
		s.Times[g] = at.UnixNano()
		if v.id == metric.CPUUsageRate {
			s.Rates[g] = metric.Window{End: at.UnixNano()}
		}
	}
	return nil
}

// addRates adds to b the sample of a line of rated.
func addRates(b *metric.Batch, line string, now time.Time) error {
	s, attrs, at, err := addSample(b, line, now)
	if err != nil {
		return err
	}
	window, rejected, bound := 15*time.Second, metric.Unjudged, 0.0
	var given []metric.Group
	for _, key := range slices.Sorted(maps.Keys(attrs)) {
		text := attrs[key]
		switch key {
		case "window":
			window, err = time.ParseDuration(text)
		case "bound":
			bound, err = Bytes(text)
		case "rejected":
			rejected, _ = metric.ParseReason(text)
		case "last-known", "ambiguous", "absent", "rule":
		default:
			v, ok := rates[key]
			if !ok {
				return fmt.Errorf("unknown attribute %q", key)
			}
			g := v.id.Describe().Group
			given = append(given, g)
			s.Reasons[g] = metric.Measured
			if reason, isReason := metric.ParseReason(text); isReason {
				s.Reasons[g] = reason
				b.Verdicts = append(b.Verdicts, metric.Verdict{Entity: s.Entity, Instance: s.Instance, Group: g, Reason: reason})
				break
			}
			var x float64
			x, err = v.parse(text)
			s.Values.Set(v.id, x)
		}
		if err != nil {
			return err
		}
	}
	if bound != 0 {
		for i := range b.Verdicts {
			if v := &b.Verdicts[i]; v.Entity == s.Entity && v.Reason == metric.OverLimit {
				v.Evidence.Limit = bound
			}
		}
	}
	if _, absent := attrs["absent"]; absent {
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
		if _, ok := attrs["ambiguous"]; ok {
			s.Reasons[g] = metric.Ambiguous
		}
		if _, ok := attrs["last-known"]; ok {
			s.LastKnown |= 1 << g
		}
	}
	if rejected != metric.Unjudged {
		s.Reject(rejected)
		v := metric.Verdict{Entity: s.Entity, Instance: s.Instance, Group: metric.CPU, Reason: rejected}
		if rule := attrs["rule"]; rule != "" {
			v.Evidence = metric.Evidence{Rule: strings.ReplaceAll(rule, "_", " "), Got: metric.CounterReading{ID: s.Instance.ID, UID: s.Instance.UID}}
		}
		b.Verdicts = append(b.Verdicts, v)
	}
	return nil
}
