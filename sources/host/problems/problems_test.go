package problems

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	var l List
	l.Add(nil, nil)
	if err := l.Err(); err != nil {
		t.Errorf("no problems = %v, want nil", err)
	}
	first := errors.New("e0")
	l.Add(first, nil)
	for i := range Most + 2 {
		l.Add(fmt.Errorf("e%d", i+1))
	}
	for range 2 { // asking changes nothing
		if s := l.Err().Error(); !strings.HasPrefix(s, "e0\ne1\n") || !strings.HasSuffix(s, "e9\nand 3 more") {
			t.Errorf("got %q, want ten and 3 more", s)
		}
	}
	if !errors.Is(l.Err(), first) {
		t.Error("the first error is not to be found in the whole")
	}
}
