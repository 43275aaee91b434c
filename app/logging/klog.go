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

// klog is global, and to set its logger while somebody logs is a race: it is set
// once, and what is behind it changes.
var (
	klogTo   atomic.Pointer[zap.Logger]
	klogOnce sync.Once
)

// TakeKlog makes everything that is logged through klog in this process, by
// client-go and cAdvisor, go to log. It is for main to call; the last call holds.
func TakeKlog(log *zap.Logger) {
	klogTo.Store(log.WithOptions(zap.AddCallerSkip(1)))
	klogOnce.Do(func() { klog.SetLogger(logr.New(&sink{})) })
}

// Logr returns log for those of weir's own packages that speak to logr, as the
// libraries do which they stand on. V(0) is info, V(1) debug.
func Logr(log *zap.Logger) logr.Logger {
	return logr.New(&sink{log: log.WithOptions(zap.AddCallerSkip(1)), own: true})
}

// sink is a logr.LogSink on zap. V(n) becomes zap's level -n; but what a library
// says at V(0) is of interest to its authors more than to weir's operators, so
// it is one step quieter: debug.
type sink struct {
	log *zap.Logger // nil: where klog goes now
	own bool        // weir itself speaks
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
