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

// guard calls do. A panic becomes its error.
func guard(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()} // the stack is still that of the panic
		}
	}()
	return do()
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// Unwrap returns the value panicked with, if it is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// The words for an error that has no metric.Reason.
const (
	reasonPanic   = "Panic"
	reasonTimeout = "Timeout"
	reasonOther   = "Other"
)

// reasonOf names the kind of err in one word, which is a label of metrics. A failing source is
// logged again when it changes.
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

// judged returns err with a reason if the source gave none and the manager knows it. The
// reason of a panic is a bad payload.
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
