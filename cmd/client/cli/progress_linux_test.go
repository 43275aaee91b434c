package cli

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// newTerminal returns a terminal of 80 columns and 24 lines, and the master that reads what it shows.
func newTerminal(t *testing.T) (terminal, master *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("make a pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal, master
}

// TestColour checks that a terminal has colours, unless the environment excludes them.
func TestColour(t *testing.T) {
	terminal, _ := newTerminal(t)
	f := func(noColor, term string, want bool) {
		t.Helper()
		t.Setenv("NO_COLOR", noColor)
		t.Setenv("TERM", term)
		if got := TerminalOf(terminal); got.Colour != want || got.Size == nil {
			t.Errorf("NO_COLOR=%q TERM=%q: got %+v, want colours: %v", noColor, term, got, want)
		}
	}
	f("", "xterm", true)
	f("1", "xterm", false)
	f("no", "xterm", false) // any value counts, see no-color.org
	f("", "dumb", false)
}

// A terminal gets the line.
func TestTerminal(t *testing.T) {
	terminal, master := newTerminal(t)
	line := StartProgress(terminal)
	if line == nil {
		t.Fatal("a terminal is not taken for one")
	}
	line.Set("reading run.weirrec", 1, 2)
	const want = "\r\rreading run.weirrec 50%"
	got := make([]byte, len(want))
	if _, err := bufio.NewReader(master).Read(got); err != nil || string(got) != want {
		t.Errorf("the terminal got %q, %v; want %q", got, err, want)
	}
	line.Stop()
}
