package terminal

import (
	"bytes"
	"testing"
)

func TestOnlyTerminalsAreTerminals(t *testing.T) {
	if got := Of(new(bytes.Buffer)); got.Colour || got.Size != nil {
		t.Errorf("a buffer is taken for a terminal: %+v", got)
	}
}
