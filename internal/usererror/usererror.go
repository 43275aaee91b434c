// Package usererror has the errors that the user of a command sees: mistakes in the way it was
// called, and errors with the next step. Package cli prints them. Packages that check flags
// of their own return them.
//
//	usererror.go   Usage, Hintf, OneOf
//	closest.go     the known name that is most similar to a misspelt one
package usererror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Hint is an error with the next step for its reader.
type Hint struct {
	Err error
	// Try is the next step: one line or several.
	Try string
}

// Error returns only the cause.
func (h *Hint) Error() string { return h.Err.Error() }

// Unwrap returns the cause.
func (h *Hint) Unwrap() error { return h.Err }

// Hintf wraps err with the next step.
func Hintf(err error, format string, args ...any) error {
	return &Hint{Err: err, Try: fmt.Sprintf(format, args...)}
}

// usage is an error in the way a command was called.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// Usage marks err as an error in the way a command was called. The command then refers to its help.
func Usage(err error) error { return usage{err} }

// IsUsage reports whether err, or an error that it wraps, is marked by Usage.
func IsUsage(err error) bool {
	var u usage
	return errors.As(err, &u)
}

// OneOf returns an error that names the most similar value, unless value is in known. An empty
// string may be in known, but the error does not suggest it.
func OneOf(what, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == "" })
	if near, ok := Closest(value, known); ok {
		return Usage(fmt.Errorf("%s cannot be %q: did you mean %q?", what, value, near))
	}
	return Usage(fmt.Errorf("%s cannot be %q: there are %s", what, value, strings.Join(known, ", ")))
}
