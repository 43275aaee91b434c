// Package logging makes the logger of a weir process from its flags, and sends the messages of
// Kubernetes' and cAdvisor's libraries to the same stream.
package logging

import (
	"fmt"
	"io"

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
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), level, nil
}

// levelName encodes the levels below debug as "debug", because zap has no names for them.
func levelName(encode zapcore.LevelEncoder) zapcore.LevelEncoder {
	return func(l zapcore.Level, e zapcore.PrimitiveArrayEncoder) {
		encode(max(l, zapcore.DebugLevel), e)
	}
}
