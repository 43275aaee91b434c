package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/internal/options"
)

// Options are the file of a recording, and its limits.
type Options struct {
	// Path is the file. If it has a recording, that is continued.
	Path string
	// MaxSize and MaxAge limit a file, in bytes and in time. When one is reached, the next file
	// begins. Default 1 GiB and no limit of time; negative means no limit.
	MaxSize int64
	MaxAge  time.Duration
	// Keep is how many full files are kept: Path.1 is the last one, Path.2 the one before it.
	// Default 1; negative keeps none.
	Keep int
	// Flush is the longest time before records are written: a crash may lose that much. Default
	// 10 s.
	Flush time.Duration
	// By is the program that writes: "weir v1.2.3".
	By string
}

func (o Options) withDefaults() Options {
	o.MaxSize, o.Keep = cmp.Or(o.MaxSize, 1<<30), cmp.Or(o.Keep, 1)
	return o
}

// Table has the options of --sink=recording.
var Table = options.Table[Options]{
	options.Field("flush", "longest wait before something is written (default 10s)", func(o *Options) *time.Duration { return &o.Flush }, options.AtLeast(time.Millisecond)),
	{Name: "keep", Help: "full files to keep beside it, FILE.1 the last (default 1)", Set: func(o *Options, v string) (err error) {
		if o.Keep, err = strconv.Atoi(v); err == nil && o.Keep < 0 {
			err = errors.New("must not be negative; 0 keeps only the file that is written")
		}
		if o.Keep == 0 {
			o.Keep = -1
		}
		return err
	}},
	{Name: "max-age", Help: "time in one file, such as 24h; 0 (default) means no limit", Set: func(o *Options, v string) (err error) {
		if o.MaxAge, err = time.ParseDuration(v); err == nil && o.MaxAge < 0 {
			err = errors.New("must not be negative; 0 means no limit")
		}
		return err
	}},
	options.Field("max-size", "of one file, such as 500M (default 1Gi); 0 means no limit", func(o *Options) *int64 { return &o.MaxSize }, size),
}

// ParseOptions parses --sink=recording:FILE[?OPTIONS].
func ParseOptions(config string, query url.Values) (Options, error) {
	o := Options{Path: config}
	if config == "" {
		return o, errors.New("it needs a file to write: write recording:FILE")
	}
	return o, Table.Parse(&o, query)
}

// size parses a number of bytes as a Kubernetes quantity; 0 means no limit. It accepts MiB
// for Mi.
func size(text string) (int64, error) {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a size: write 500M or 2Gi", text)
	case q.Sign() < 0:
		return 0, errors.New("must not be negative; 0 means no limit")
	case q.IsZero():
		return -1, nil
	case q.Value() < 64<<10:
		return 0, errors.New("must be at least 64Ki")
	}
	return q.Value(), nil
}
