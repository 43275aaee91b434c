// Package cmptest reports how a value differs from the one that a test wants.
package cmptest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Equal fails the test with the differences if got is not want. what is the subject of the message.
func Equal(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
