package log

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Format is the format of the lines.
type Format string

// The formats.
const (
	Text Format = "text"
	JSON Format = "json"
)

// Options are how batches are written. The zero Options means the defaults.
type Options struct {
	// Format of lines. Default Text.
	Format Format
	// Verbose adds a line for each entity. Default: only one for each batch.
	Verbose bool
}

// ParseOptions parses the text after "log:" in --sink=log:[?OPTIONS], for instance
// "?format=json&verbose=true". ?verbose means ?verbose=true.
func ParseOptions(spec string) (Options, error) {
	var o Options
	config, query, _ := strings.Cut(spec, "?")
	if config != "" {
		return o, fmt.Errorf("sink log takes no configuration, got %q: write log:?format=json", config)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("parse options of sink log: %w", err)
	}
	for name, given := range values {
		value := given[len(given)-1]
		switch name {
		case "format":
			if o.Format = Format(value); !slices.Contains([]Format{Text, JSON}, o.Format) {
				return o, fmt.Errorf("parse option format of sink log: no format is called %q: there are text and json", value)
			}
		case "verbose":
			if o.Verbose = true; value != "" {
				if o.Verbose, err = strconv.ParseBool(value); err != nil {
					return o, fmt.Errorf("parse option verbose of sink log: %w", err)
				}
			}
		default:
			return o, fmt.Errorf("sink log has no option %q: it has format, verbose", name)
		}
	}
	return o, nil
}

// OptionsHelp describes the options of ParseOptions.
func OptionsHelp() string {
	return `  format                text (default) or json
  verbose               a line for each entity (default false)`
}
