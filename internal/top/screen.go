package top

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// screen is where tables go: a terminal, which can be drawn over, or anything
// else, to which is only added.
type screen struct {
	w      io.Writer
	colour bool
	// size returns the terminal's columns and lines; nil if it is none.
	size func() (width, height int, err error)
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	s.size = func() (int, int, error) { return term.GetSize(int(f.Fd())) }
	return s
}

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
