// Package stageflag parses Heapster's form of a source or sink on the command line:
// NAME[:CONFIG][?OPTIONS], for example
//
//	--source=kubelet:?endpoint=summary&resolution=30s
//	--sink=log:/var/log/usage.json?format=json
//
// It parses the form and does not know what the names mean. A StageList has the known names, so
// that a misspelt name is an error of its flag.
package stageflag

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Stage is one source or sink as the user wrote it.
type Stage struct {
	// Name is the name of the source or sink: "kubelet".
	Name string
	// Config is the text between the first colon and the first question mark: a URL or a path. It
	// is often empty.
	Config string
	// Options are the query parameters. They are never nil.
	Options url.Values
}

// Parse parses one NAME[:CONFIG][?OPTIONS].
func Parse(s string) (Stage, error) {
	rest, query, _ := strings.Cut(s, "?")
	name, config, _ := strings.Cut(rest, ":")
	if name == "" {
		return Stage{}, fmt.Errorf("%q has no name: write NAME[:CONFIG][?OPTIONS]", humanize.URL(s))
	}
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return Stage{}, fmt.Errorf("%q is not a name: write NAME[:CONFIG][?OPTIONS], as in kubelet:?endpoint=summary", name)
	}
	options, err := url.ParseQuery(query)
	if err != nil {
		return Stage{}, fmt.Errorf("read options of %s: %w", name, err)
	}
	if options.Has("") {
		return Stage{}, fmt.Errorf("options of %s have a value without a name", name)
	}
	return Stage{Name: name, Config: config, Options: options}, nil
}

// String formats s so that Parse reads it, with its options sorted.
func (s Stage) String() string {
	out := s.Name
	if s.Config != "" || len(s.Options) > 0 {
		out += ":" + s.Config
	}
	if len(s.Options) > 0 {
		out += "?" + s.Options.Encode()
	}
	return out
}

// StageList is a repeatable flag (a pflag.SliceValue) for stages of known names.
type StageList struct {
	// What is the kind of stage for errors: "source" or "sink".
	What string
	// Known are the valid names.
	Known []string
	// Stages are the given stages, in their order.
	Stages []Stage
}

// Set adds a stage.
func (l *StageList) Set(text string) error {
	s, err := Parse(text)
	if err != nil {
		return err
	}
	if slices.Contains(l.Known, s.Name) {
		l.Stages = append(l.Stages, s)
		return nil
	}
	if near, ok := cli.Closest(s.Name, l.Known); ok {
		return fmt.Errorf("no %s is called %q: did you mean %q?", l.What, s.Name, near)
	}
	if len(l.Known) == 1 {
		return fmt.Errorf("no %s is called %q here: there is only %s", l.What, s.Name, l.Known[0])
	}
	return fmt.Errorf("no %s is called %q: there are %s", l.What, s.Name, strings.Join(l.Known, ", "))
}

// Append adds a stage.
func (l *StageList) Append(text string) error { return l.Set(text) }

// Replace replaces the stages.
func (l *StageList) Replace(texts []string) error {
	l.Stages = nil
	for _, t := range texts {
		if err := l.Set(t); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice returns the stages as they were given.
func (l *StageList) GetSlice() []string {
	texts := make([]string, len(l.Stages))
	for i, s := range l.Stages {
		texts[i] = s.String()
	}
	return texts
}

// String writes the stages, separated by spaces.
func (l *StageList) String() string { return strings.Join(l.GetSlice(), " ") }

// Type is the placeholder in the help text.
func (l *StageList) Type() string { return "NAME[:CONFIG][?OPTIONS]" }
