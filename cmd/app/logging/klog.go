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

// klog is global, and setting its logger while a library logs is a race. So it is set only once, to
// a sink with a logger that can change.
var (
	klogTo   atomic.Pointer[zap.Logger]
	klogOnce sync.Once
)

// TakeKlog sends all klog messages of this process to log. client-go and cAdvisor use klog. The
// last call counts.
func TakeKlog(log *zap.Logger) {
	klogTo.Store(log.WithOptions(zap.AddCallerSkip(1)))
	klogOnce.Do(func() { klog.SetLogger(logr.New(&sink{})) })
}

// Logr returns log for those packages of weir that use logr. V(0) is info, V(1) is debug.
func Logr(log *zap.Logger) logr.Logger {
	return logr.New(&sink{log: log.WithOptions(zap.AddCallerSkip(1)), own: true})
}

// sink is a logr.LogSink on zap. V(n) becomes zap's level -n. For a library it becomes one level
// less severe, because a library's V(0) is of more use to its authors than to weir's operators.
type sink struct {
	log *zap.Logger // nil: the present logger for klog
	own bool        // weir itself logs through it
}

func (s *sink) to() *zap.Logger {
	if s.log == nil {
		return klogTo.Load()
	}
	return s.log
}

// Init implements logr.LogSink.
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled reports whether V(level) is logged.
func (s *sink) Enabled(level int) bool { return s.to().Core().Enabled(s.level(level)) }

// Info logs at V(level).
func (s *sink) Info(level int, msg string, pairs ...any) {
	if e := s.to().Check(s.level(level), msg); e != nil {
		e.Write(fields(pairs)...)
	}
}

// Error logs err. An error of a library is a warning of weir: weir continues, and reports itself
// what is missing because of it.
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
