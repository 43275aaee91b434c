package log

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/weir-metrics/weir/internal/options"
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

// Table has the options of --sink=log.
var Table = options.Table[Options]{
	{Name: "format", Help: "text (default) or json", Set: func(o *Options, v string) error {
		if o.Format = Format(v); !slices.Contains([]Format{Text, JSON}, o.Format) {
			return fmt.Errorf("no format is called %q: there are text and json", v)
		}
		return nil
	}},
	options.Field("verbose", "a line for each entity (default false)", func(o *Options) *bool { return &o.Verbose }, options.Bool),
}

// ParseOptions parses --sink=log:[?OPTIONS].
func ParseOptions(config string, query url.Values) (o Options, err error) {
	if err := options.NoConfig(config, "log:?format=json"); err != nil {
		return o, err
	}
	return o, Table.Parse(&o, query)
}
