package transcript

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// Lines returns the lines of a command's input that are not empty, without
// surrounding spaces.
func Lines(input string) (out []string) {
	for line := range strings.Lines(input) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// Moment parses an offset from Epoch, such as -1h or 15s.
func Moment(offset string) (time.Time, error) {
	d, err := time.ParseDuration(offset)
	if err != nil {
		return time.Time{}, fmt.Errorf("offset: %w", err)
	}
	return Epoch.Add(d), nil
}

// Offset returns the time from Epoch to a moment. at is in nanoseconds since
// the Unix epoch.
func Offset(at int64) time.Duration { return time.Unix(0, at).Sub(Epoch) }

// Entity parses the name of an entity: node, system/cron, shop/web or
// shop/web/app, each optionally with a part, as in shop/web[interface:eth0].
func Entity(node metric.NodeName, name string) metric.Entity {
	name, part, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	e := metric.Entity{Node: node, Part: part}
	parts := strings.SplitN(name, "/", 3)
	switch {
	case parts[0] == "node":
		e.Kind = metric.Node
	case parts[0] == "system":
		e.Kind, e.Name = metric.System, strings.TrimPrefix(name, "system")
	case len(parts) == 2:
		e.Kind = metric.Pod
	default:
		e.Kind, e.Name = metric.Container, parts[2]
	}
	if e.Kind == metric.Pod || e.Kind == metric.Container {
		e.Namespace, e.Pod = metric.Namespace(parts[0]), metric.PodName(parts[1])
	}
	return e
}

// Bytes parses an amount of bytes such as 10Mi.
func Bytes(v string) (float64, error) {
	factor := 1.0
	for _, u := range [...]struct {
		suffix string
		factor float64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}} {
		if rest, ok := strings.CutSuffix(v, u.suffix); ok {
			v, factor = rest, u.factor
		}
	}
	n, err := strconv.ParseFloat(v, 64)
	return n * factor, err
}

// cores parses 250m or 2 and returns nanocores.
func cores(v string) (float64, error) {
	milli, isMilli := strings.CutSuffix(v, "m")
	n, err := strconv.ParseFloat(milli, 64)
	if isMilli {
		return n * 1e6, err
	}
	return n * 1e9, err
}

// fields splits "name key=value flag" into the name and its attributes.
func fields(line string) (name string, attrs map[string]string) {
	name, rest, _ := strings.Cut(line, " ")
	attrs = map[string]string{}
	for _, field := range strings.Fields(rest) {
		key, v, _ := strings.Cut(field, "=")
		attrs[key] = v
	}
	return name, attrs
}
