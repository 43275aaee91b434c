// Package options parses the options of a source or sink, which users write as in a URL:
// --sink=NAME[:CONFIG][?OPTIONS]. Each source and sink has a Table of its options, from which its
// help and its errors come. The errors do not have the name of the source or sink, which the caller
// adds, and no values, which can be secrets, unless the function of an option puts them there.
package options

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric/series"
)

// Option is one option. It sets fields of an O.
type Option[O any] struct {
	Name string
	// Help is its line on a page of help.
	Help string
	// Set sets its value. An option that may be given more than once has SetAll instead, which gets all
	// its values, at least one.
	Set    func(o *O, value string) error
	SetAll func(o *O, values []string) error
	// Alias is another name that is accepted. It may be empty.
	Alias string
}

// Field returns an option. parse reads its value, and field returns where the result is stored.
func Field[O, V any](name, help string, field func(*O) *V, parse func(string) (V, error)) Option[O] {
	return Option[O]{Name: name, Help: help, Set: func(o *O, value string) (err error) {
		*field(o), err = parse(value)
		return err
	}}
}

// Table has the options of a source or sink, in the order of its help.
type Table[O any] []Option[O]

// Help has a line for each option.
func (t Table[O]) Help() string {
	lines := make([]string, len(t))
	for i := range t {
		lines[i] = fmt.Sprintf("  %-21s %s", t[i].Name, t[i].Help)
	}
	return strings.Join(lines, "\n")
}

// Names has the names of all options, separated by commas.
func (t Table[O]) Names() string {
	names := make([]string, len(t))
	for i := range t {
		names[i] = t[i].Name
	}
	return strings.Join(names, ", ")
}

// Parse sets the options of a query.
func (t Table[O]) Parse(o *O, query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		i := slices.IndexFunc(t, func(p Option[O]) bool { return p.Name == name || p.Alias == name })
		if i < 0 {
			return fmt.Errorf("no option is called %q: there are %s", name, t.Names())
		}
		var err error
		switch {
		case t[i].SetAll != nil:
			err = t[i].SetAll(o, values)
		case len(values) > 1:
			return fmt.Errorf("option %s is given %d times: give it once", name, len(values))
		default:
			err = t[i].Set(o, values[0])
		}
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
	}
	return nil
}

// Sorted returns the table in the order of its names.
func (t Table[O]) Sorted() Table[O] {
	return slices.SortedFunc(slices.Values(t), func(a, b Option[O]) int { return strings.Compare(a.Name, b.Name) })
}

// Within returns a table of O that sets the options of a part of it.
func Within[O, P any](t Table[P], part func(*O) *P) Table[O] {
	outer := make(Table[O], len(t))
	for i, p := range t {
		outer[i] = Option[O]{Name: p.Name, Help: p.Help, Alias: p.Alias}
		if p.SetAll != nil {
			outer[i].SetAll = func(o *O, values []string) error { return p.SetAll(part(o), values) }
		} else {
			outer[i].Set = func(o *O, value string) error { return p.Set(part(o), value) }
		}
	}
	return outer
}

// Filter has the options that select series.
var Filter = Table[series.Filter]{
	filterOption("label", "", "only series with NAME=VALUE; * and ? stand for others; repeatable"),
	filterOption("level", "levels", "only these: cluster, namespace, node, system, pod, container"),
	filterOption("metric", "metrics", "only names that match; * and ? stand for others"),
	filterOption("namespace", "namespaces", "only these"),
	filterOption("profile", "", "default, what most people use, or all"),
}

func filterOption(name, alias, help string) Option[series.Filter] {
	return Option[series.Filter]{Name: name, Alias: alias, Help: help, SetAll: func(f *series.Filter, values []string) error {
		_, err := f.Set(name, values)
		return err
	}}
}

// NoConfig returns an error for a CONFIG where there is none. example shows what to write.
func NoConfig(config, example string) error {
	if config == "" {
		return nil
	}
	return fmt.Errorf("there is no configuration before the question mark, got %q: write %s", config, example)
}

// Text is a value as it is.
func Text[S ~string](value string) (S, error) { return S(value), nil }

// NotEmpty is Text that is not empty.
func NotEmpty[S ~string](value string) (S, error) {
	if value == "" {
		return "", errors.New("it has no value")
	}
	return S(value), nil
}

// Positive parses a whole number above 0.
func Positive(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not above 0", n)
	}
	return n, err
}

// AtLeast returns a function that parses a duration of this length or longer.
func AtLeast(least time.Duration) func(string) (time.Duration, error) {
	return func(value string) (time.Duration, error) {
		d, err := time.ParseDuration(value)
		if err == nil && d < least {
			err = fmt.Errorf("it cannot be %v: at least %v", d, least)
		}
		return d, err
	}
}

// Bool parses true, false, or nothing, which is true.
func Bool(value string) (bool, error) {
	switch value {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", value)
}

// Pairs parses values of the form NAME=VALUE. Its errors do not contain the values.
func Pairs(values []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, pair := range values {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, errors.New("it is not of the form NAME=VALUE")
		}
		pairs[name] = value
	}
	return pairs, nil
}
