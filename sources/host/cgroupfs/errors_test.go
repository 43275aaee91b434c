package cgroupfs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorList(t *testing.T) {
	var l ErrorList
	l.Add(nil, nil)
	if err := l.Err(); err != nil {
		t.Errorf("no errors = %v, want nil", err)
	}
	first := errors.New("e0")
	l.Add(first, nil)
	for i := range maxErrors + 2 {
		l.Add(fmt.Errorf("e%d", i+1))
	}
	for range 2 { // Err changes nothing
		if s := l.Err().Error(); !strings.HasPrefix(s, "e0\ne1\n") || !strings.HasSuffix(s, "e9\nand 3 more") {
			t.Errorf("got %q, want ten and 3 more", s)
		}
	}
	if !errors.Is(l.Err(), first) {
		t.Error("the first error is not to be found in the whole")
	}
}
