package logging

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// klog is global, and setting its logger while a library logs is a race. So it is set once, to a
// sink whose logger can change.
var (
	klogTo   atomic.Pointer[zap.Logger]
	klogOnce sync.Once
)

// TakeKlog sends to log everything that this process logs through klog, as client-go and cAdvisor
// do. The last call counts.
func TakeKlog(log *zap.Logger) {
	klogTo.Store(log.WithOptions(zap.AddCallerSkip(1)))
	klogOnce.Do(func() { klog.SetLogger(logr.New(&sink{})) })
}

// Logr returns log for weir's own packages that use logr. V(0) is info, V(1) debug.
func Logr(log *zap.Logger) logr.Logger {
	return logr.New(&sink{log: log.WithOptions(zap.AddCallerSkip(1)), own: true})
}

// sink is a logr.LogSink on zap. V(n) becomes zap's level -n, and for a library one step less: its
// V(0) interests its authors more than weir's operators.
type sink struct {
	log *zap.Logger // nil: where klog goes now
	own bool        // it logs for weir itself
}

func (s *sink) to() *zap.Logger {
	if s.log == nil {
		return klogTo.Load()
	}
	return s.log
}

// Init is part of logr.LogSink.
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled reports whether V(level) is logged.
func (s *sink) Enabled(level int) bool { return s.to().Core().Enabled(s.level(level)) }

// Info logs at V(level).
func (s *sink) Info(level int, msg string, pairs ...any) {
	if e := s.to().Check(s.level(level), msg); e != nil {
		e.Write(fields(pairs)...)
	}
}

// Error logs err. A library's errors are warnings to weir: it goes on, and says
// itself what is missing because of them.
func (s *sink) Error(err error, msg string, pairs ...any) {
	if e := s.to().Check(zapcore.WarnLevel, msg); e != nil {
		e.Write(append(fields(pairs), zap.Error(err))...)
	}
}

// WithValues returns a sink that adds pairs to each line.
func (s *sink) WithValues(pairs ...any) logr.LogSink {
	return &sink{s.to().With(fields(pairs)...), s.own}
}

// WithName returns a sink that logs under name.
func (s *sink) WithName(name string) logr.LogSink { return &sink{s.to().Named(name), s.own} }

func (s *sink) level(v int) zapcore.Level {
	if !s.own {
		v++
	}
	return zapcore.Level(-min(v, 127))
}

func fields(pairs []any) []zap.Field {
	fields := make([]zap.Field, 0, len(pairs)/2+1)
	for len(pairs) >= 2 {
		fields = append(fields, zap.Any(fmt.Sprint(pairs[0]), pairs[1]))
		pairs = pairs[2:]
	}
	if len(pairs) == 1 {
		fields = append(fields, zap.Any("extra", pairs[0]))
	}
	return fields
}
