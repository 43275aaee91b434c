package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/weir-metrics/weir/metric"
)

// panicError is a panic caught in a stage.
type panicError struct {
	value any
	stack []byte
}

// caught makes what recover returned an error. Call it in the deferred
// function itself, while the stack is still that of the panic.
func caught(value any) *panicError { return &panicError{value, debug.Stack()} }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// Unwrap returns the value panicked with, if it is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// The words for an error that carries no metric.Reason.
const (
	reasonPanic   = "Panic"
	reasonTimeout = "Timeout"
	reasonOther   = "Other"
)

// reasonOf names the kind of err in one word: what metrics are labelled with,
// and what must change for a failing source to be logged again.
func reasonOf(err error) string {
	var read *metric.ReadError
	var panicked *panicError
	switch {
	case errors.As(err, &panicked):
		return reasonPanic
	case errors.As(err, &read):
		return read.Reason.String()
	case errors.Is(err, context.DeadlineExceeded):
		return reasonTimeout
	default:
		return reasonOther
	}
}

// judged returns err with a reason where the source gave none and the manager
// knows it: a panic is taken for the work of a payload that no one foresaw.
func judged(err error) error {
	if err == nil {
		return nil // Fast path: errors.As needs memory for its target.
	}
	var read *metric.ReadError
	var panicked *panicError
	switch {
	case errors.As(err, &read):
		return err
	case errors.As(err, &panicked):
		return &metric.ReadError{Reason: metric.NodeBadPayload, Err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &metric.ReadError{Reason: metric.NodeTimeout, Err: err}
	default:
		return err
	}
}
