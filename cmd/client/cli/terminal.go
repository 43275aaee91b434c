package cli

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is what an output can show. A terminal has colours and a width. The zero Terminal is any
// other output, which gets plain text.
type Terminal struct {
	// Colour reports whether the output understands escape sequences.
	Colour bool
	// Size returns the columns and lines. It is nil if the output is not a terminal.
	Size func() (width, height int, err error)
}

// TerminalBuffer stores output that a terminal will show.
type TerminalBuffer struct {
	bytes.Buffer
	Terminal
}

// TerminalOf returns what w can show. It respects the environment variable NO_COLOR.
func TerminalOf(w io.Writer) Terminal {
	if b, ok := w.(*TerminalBuffer); ok {
		return b.Terminal
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Terminal{}
	}
	return Terminal{
		Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Size:   func() (int, int, error) { return term.GetSize(int(f.Fd())) },
	}
}
