// Package logging makes the logger of a weir process from its flags, and sends the messages of
// Kubernetes' and cAdvisor's libraries to the same stream.
package logging

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// Options describe what is logged and in which format.
type Options struct {
	// Level is the lowest level that is logged: debug, info (the default), warn or error.
	Level string
	// Format is console (the default) or json.
	Format string
	// Verbosity is that of Kubernetes' components, 0 to 10. 0 logs what Level selects, 1 is debug, and
	// from 2 on the libraries log more and more.
	Verbosity int
}

// Default returns the default options.
func Default() Options { return Options{Level: "info", Format: "console"} }

// AddFlags adds the flags that set o. Their defaults are the present values of o.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Level, "log-level", o.Level, "least severe level to log: debug, info, warn or error")
	f.StringVar(&o.Format, "log-format", o.Format, "console or json")
	f.IntVarP(&o.Verbosity, "v", "v", o.Verbosity, "verbosity of Kubernetes' components, 0 to 10; 1 is debug; with more, libraries log more, too")
}

// LeastLevel returns the least severe level that is logged.
func (o Options) LeastLevel() (zapcore.Level, error) {
	if err := cli.OneOf("--log-level", o.Level, "debug", "info", "warn", "error"); err != nil {
		return 0, err
	}
	if o.Verbosity < 0 || o.Verbosity > 10 {
		return 0, cli.Usage(fmt.Errorf("-v cannot be %d: it goes from 0 to 10", o.Verbosity))
	}
	level, err := zapcore.ParseLevel(o.Level)
	if err != nil {
		return 0, fmt.Errorf("read log level: %w", err)
	}
	if o.Verbosity > 0 {
		level = min(level, zapcore.Level(-o.Verbosity)) // V(1) is zap's debug, which is -1
	}
	return level, nil
}

// New returns a logger that writes to w, and its level, which can be changed.
func New(o Options, w io.Writer) (*zap.Logger, zap.AtomicLevel, error) {
	level := zap.NewAtomicLevel()
	least, err := o.LeastLevel()
	if err != nil {
		return nil, level, err
	}
	if err := cli.OneOf("--log-format", o.Format, "console", "json"); err != nil {
		return nil, level, err
	}
	level.SetLevel(least)
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	c.EncodeDuration = zapcore.StringDurationEncoder
	c.EncodeLevel = levelName(zapcore.LowercaseLevelEncoder)
	c.TimeKey = "time"
	encoder := zapcore.NewJSONEncoder(c)
	if o.Format == "console" {
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		c.EncodeLevel = levelName(zapcore.CapitalLevelEncoder)
		c.ConsoleSeparator = " "
		encoder = zapcore.NewConsoleEncoder(c)
	}
	to := zapcore.Lock(zapcore.AddSync(w))
	verbose := zap.LevelEnablerFunc(func(l zapcore.Level) bool { return l < zapcore.InfoLevel && level.Enabled(l) })
	normal := zap.LevelEnablerFunc(func(l zapcore.Level) bool { return l >= zapcore.InfoLevel && level.Enabled(l) })
	return zap.New(zapcore.NewTee(zapcore.NewCore(encoder, to, verbose), limitRepeats(zapcore.NewCore(encoder, to, normal)))), level, nil
}

// maxRepeats is how often one message is logged within a minute. An event that concerns each of many
// nodes would fill the log.
const maxRepeats = 100

// limitRepeats returns a core that logs a message at most maxRepeats times a minute, and then one line that
// more are left out.
func limitRepeats(core zapcore.Core) zapcore.Core {
	var mu sync.Mutex
	reported := map[string]time.Time{} // when it was last logged that a message is left out
	return zapcore.NewSamplerWithOptions(core, time.Minute, maxRepeats, 0, zapcore.SamplerHook(func(e zapcore.Entry, d zapcore.SamplingDecision) {
		mu.Lock()
		defer mu.Unlock()
		if d&zapcore.LogDropped == 0 || e.Time.Sub(reported[e.Message]) < time.Minute {
			return
		}
		reported[e.Message] = e.Time
		note := zapcore.Entry{Level: e.Level, Time: e.Time, Message: fmt.Sprintf("more than %d lines within a minute have the same message: the others are left out", maxRepeats)}
		_ = core.Write(note, []zapcore.Field{zap.String("repeated", e.Message)}) // zap does not report such errors either
	}))
}

// levelName encodes the levels below debug as "debug", because zap has no names for them.
func levelName(encode zapcore.LevelEncoder) zapcore.LevelEncoder {
	return func(l zapcore.Level, e zapcore.PrimitiveArrayEncoder) {
		encode(max(l, zapcore.DebugLevel), e)
	}
}
