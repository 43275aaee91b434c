package series

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// Filter selects series. The zero Filter selects all.
type Filter struct {
	// Profile is a named set of metrics. Default: all, or by Usual those in common use.
	Profile Profile
	// Levels are the kinds of entity. Default: all.
	Levels []metric.Kind
	// Metrics are patterns. A metric's name must match one of them: Heapster's ("cpu/*"),
	// Prometheus' without prefix ("cpu_*") or in full ("weir_pod_cpu_*"). Default: all.
	Metrics []string
	// Namespaces are patterns. An entity's namespace must match one of them. Entities without a
	// namespace are then not selected. Default: all.
	Namespaces []string
	// Labels are patterns for labels. A series must match all of them; a label that it does not
	// have is empty. Default: none.
	Labels map[string]string
}

// Set sets one option, given once or more often: level=pod,node, metric=cpu_*, namespace=shop,
// label=node=worker-*, profile=all. Lists are separated by commas; * in a pattern matches any text,
// ? for one character. It reports whether the Filter has such an option.
func (f *Filter) Set(option string, given []string) (known bool, err error) {
	switch option {
	case "level", "levels":
		f.Levels, err = kinds(split(given))
	case "metric", "metrics":
		f.Metrics = split(given)
	case "namespace", "namespaces":
		f.Namespaces = split(given)
	case "label":
		f.Labels, err = labels(given)
	case "profile":
		f.Profile, err = parseProfile(given[len(given)-1])
	default:
		return false, nil
	}
	return true, err
}

// Level reports whether entities of a kind are selected.
func (f *Filter) Level(k metric.Kind) bool {
	return len(f.Levels) == 0 || slices.Contains(f.Levels, k)
}

// Metric reports whether a metric of entities of kind k is selected. part is the kind of part,
// or empty.
func (f *Filter) Metric(k metric.Kind, part string, d *metric.Descriptor) bool {
	if f.Profile == Default && !inDefault(k, part, d) {
		return false
	}
	return len(f.Metrics) == 0 || slices.ContainsFunc(f.Metrics, func(pattern string) bool {
		return Match(pattern, d.Name) || Match(pattern, d.Prometheus) || Match(pattern, Name(k, part, d))
	})
}

// Family reports whether a metric family that is not in the catalogue is selected.
func (f *Filter) Family(name string) bool {
	return len(f.Metrics) == 0 || slices.ContainsFunc(f.Metrics, func(pattern string) bool { return Match(pattern, name) })
}

// Wide reports whether all entities of the selected kinds are selected.
func (f *Filter) Wide() bool { return len(f.Namespaces)+len(f.Labels) == 0 }

// Entity reports whether the entity with these labels is selected, if its kind is.
func (f *Filter) Entity(l *Labels) bool {
	if len(f.Namespaces) > 0 && !slices.ContainsFunc(f.Namespaces, func(pattern string) bool {
		return l.Get("namespace") != "" && Match(pattern, l.Get("namespace"))
	}) {
		return false
	}
	for name, pattern := range f.Labels {
		if !Match(pattern, l.Get(name)) {
			return false
		}
	}
	return true
}

// Match reports whether s matches pattern: * matches any text, also with slashes, ? for one
// byte.
func Match(pattern, s string) bool {
	star, retry := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0: // the last star takes one more byte
			retry++
			p, i = star+1, retry
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func split(given []string) (all []string) {
	for _, list := range given {
		for s := range strings.SplitSeq(list, ",") {
			if s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

func kinds(names []string) ([]metric.Kind, error) {
	var all []metric.Kind
	for _, name := range names {
		k := metric.Kind(0)
		for int(k) < metric.NumKinds && k.String() != name {
			k++
		}
		if int(k) == metric.NumKinds {
			return nil, fmt.Errorf("no level is called %q: there are cluster, namespace, node, system, pod, container", name)
		}
		all = append(all, k)
	}
	return all, nil
}

func labels(given []string) (map[string]string, error) {
	all := map[string]string{}
	for _, s := range given {
		name, pattern, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not of the form label=pattern, such as node=worker-*", s)
		}
		all[name] = pattern
	}
	return all, nil
}
