package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-metrics/weir/internal/humanize"
)

// field is a key of a mapping.
type field struct {
	required bool
	read     func(*yaml.Node) // receives the value
}

// fields are the keys that a mapping may have.
type fields map[string]field

// names returns the keys, required ones first.
func (f fields) names() []string {
	var required, optional []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if f[name].required {
			required = append(required, name)
		} else {
			optional = append(optional, name)
		}
	}
	return append(required, optional...)
}

// mapping reads n with its fields. what names n in mistakes.
func (p *fileParser) mapping(n *yaml.Node, what string, known fields) {
	if n.Kind != yaml.MappingNode {
		p.addMistake(n, "%s is %s: it needs %s", what, kindOf(n), humanize.List(known.names(), 0))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolveAlias(n.Content[i+1])
		f, ok := known[key.Value]
		switch {
		case !ok || key.Kind != yaml.ScalarNode:
			m := p.addMistake(key, "unknown key %q: %s has %s", key.Value, what, humanize.List(known.names(), 0))
			m.Wrong, m.Known = key.Value, known.names()
		case seen[key.Value]:
			p.addMistake(key, "%s is there twice: leave one out", key.Value)
		case value.Tag == "!!null":
			p.addMistake(key, "%s has no value: give it one or leave it out", key.Value)
		default:
			f.read(value)
		}
		seen[key.Value] = true
	}
	for _, name := range known.names() {
		if known[name].required && !seen[name] {
			p.addMistake(n, "%s has no %s: add it", what, name)
		}
	}
}

// hasOnlyOverTime reports whether the file at root has metrics, and all of them are over time, so that
// it needs no Prometheus.
func hasOnlyOverTime(root *yaml.Node) bool {
	metrics := valueOf(root, "metrics")
	if metrics == nil || metrics.Kind != yaml.SequenceNode || len(metrics.Content) == 0 {
		return false
	}
	return !slices.ContainsFunc(metrics.Content, func(n *yaml.Node) bool { return valueOf(resolveAlias(n), "overTime") == nil })
}

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolveAlias(n.Content[i+1])
		}
	}
	return nil
}

// text returns a function that reads a string into to.
func (p *fileParser) text(to *string, name string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
			p.addMistake(n, "%s is %s: it must be text, in quotes if need be", name, kindOf(n))
		case strings.TrimSpace(n.Value) == "":
			p.addMistake(n, "%s is empty: give it a value or leave it out", name)
		default:
			*to = n.Value
		}
	}
}

// boolean returns a function that reads a boolean into to.
func (p *fileParser) boolean(to *bool, name string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			p.addMistake(n, "%s is %s: it must be true or false", name, valueText(n))
			return
		}
		*to = strings.EqualFold(n.Value, "true")
	}
}

// list returns a function that reads a list of strings into to.
func (p *fileParser) list(to *[]string, name string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
			p.addMistake(n, "%s is %s: it must be a list, as in [queue_depth]", name, kindOf(n))
			return
		}
		for _, item := range n.Content {
			var s string
			if p.text(&s, "an item of "+name)(resolveAlias(item)); s != "" {
				*to = append(*to, s)
			}
		}
	}
}

// resolveAlias returns the target of an alias. Aliases are resolved only to the depth of the
// format, so they cannot expand without limit.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// kindOf names the kind of n.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!str":
		return "text"
	}
	return "of type " + n.Tag
}

// valueText returns a scalar's text, or the kind of n.
func valueText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return fmt.Sprintf("%q", n.Value)
	}
	return kindOf(n)
}
