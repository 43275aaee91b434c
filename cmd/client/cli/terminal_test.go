package cli

import (
	"bytes"
	"testing"
)

func TestOnlyTerminalsAreTerminals(t *testing.T) {
	if got := TerminalOf(new(bytes.Buffer)); got.Colour || got.Size != nil {
		t.Errorf("a buffer is taken for a terminal: %+v", got)
	}
}
