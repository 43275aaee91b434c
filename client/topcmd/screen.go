package topcmd

import (
	"bufio"
	"fmt"
	"io"

	"github.com/weir-metrics/weir/client/terminal"
)

// screen is where tables go: a terminal, which can be drawn over, or anything
// else, to which is only added.
type screen struct {
	w io.Writer
	terminal.Terminal
}

func newScreen(w io.Writer) *screen { return &screen{w, terminal.Of(w)} }

// print adds lines.
func (s *screen) print(lines []string) error {
	out := bufio.NewWriter(s.w)
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
	return out.Flush()
}

// redraw puts lines where the last ones were. It overwrites line by line, since
// a screen that is wiped first flickers.
func (s *screen) redraw(lines []string, height int) error {
	if height > 1 && len(lines) > height-1 {
		cut := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("(%d more lines)", cut))
	}
	out := bufio.NewWriter(s.w)
	fmt.Fprint(out, "\x1b[H")
	for _, l := range lines {
		fmt.Fprint(out, l, "\x1b[K\r\n")
	}
	fmt.Fprint(out, "\x1b[J")
	return out.Flush()
}
