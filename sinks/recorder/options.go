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

// known are the options of ParseOptions.
var known = []string{"flush", "keep", "max-age", "max-size"}

// ParseOptions parses the text after "recording:" in --sink=recording:FILE[?OPTIONS], for
// instance "run.weirrec?max-size=200MiB&max-age=24h&keep=7". 0 means no limit.
func ParseOptions(spec string) (Options, error) {
	path, query, _ := strings.Cut(spec, "?")
	o := Options{Path: path}
	if path == "" {
		return o, errors.New("sink recording needs a file to write: write recording:FILE")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("parse options of sink recording: %w", err)
	}
	for name, given := range values {
		value := given[len(given)-1]
		switch name {
		case "max-size":
			o.MaxSize, err = size(value)
		case "max-age":
			if o.MaxAge, err = time.ParseDuration(value); err == nil && o.MaxAge < 0 {
				err = errors.New("must not be negative; 0 is no limit")
			}
		case "keep":
			if o.Keep, err = strconv.Atoi(value); err == nil && o.Keep < 0 {
				err = errors.New("must not be negative; 0 keeps only the file that is written")
			}
			if o.Keep == 0 {
				o.Keep = -1
			}
		case "flush":
			if o.Flush, err = time.ParseDuration(value); err == nil && o.Flush <= 0 {
				err = fmt.Errorf("%v is not above 0", o.Flush)
			}
		default:
			return o, fmt.Errorf("sink recording has no option %q: it has %s", name, strings.Join(known, ", "))
		}
		if err != nil {
			return o, fmt.Errorf("parse option %s of sink recording: %w", name, err)
		}
	}
	return o, nil
}

// size parses a number of bytes as a Kubernetes quantity; 0 means no limit. It accepts MiB
// for Mi.
func size(text string) (int64, error) {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a size: write 500M or 2Gi", text)
	case q.Sign() < 0:
		return 0, errors.New("must not be negative; 0 is no limit")
	case q.IsZero():
		return -1, nil
	case q.Value() < 64<<10:
		return 0, errors.New("must be at least 64Ki")
	}
	return q.Value(), nil
}

// OptionsHelp describes the options of ParseOptions.
func OptionsHelp() string {
	return `  flush                 longest wait before something is written (default 10s)
  keep                  full files to keep beside it, FILE.1 the last (default 1)
  max-age               time in one file, such as 24h; 0 (default) is no limit
  max-size              of one file, such as 500M (default 1Gi); 0 is no limit`
}
