// Package terminal tells what can be done with an output: on a terminal there are
// colours and a width, anywhere else there is only text.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is what an output is capable of. The zero Terminal is any other output.
type Terminal struct {
	// Colour says that escape sequences are welcome.
	Colour bool
	// Size returns the columns and lines; nil if it is no terminal.
	Size func() (width, height int, err error)
}

// Of returns what w is capable of. The environment's NO_COLOR is honoured.
func Of(w io.Writer) Terminal {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Terminal{}
	}
	return Terminal{
		Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Size:   func() (int, int, error) { return term.GetSize(int(f.Fd())) },
	}
}
