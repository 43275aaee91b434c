//go:build linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The path of a program is relative to the working directory of this process, not to that of the program.
func TestRelativePath(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(here, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.TempDir(), "test", nil, path, "-test.run=^$")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	if err := p.Wait(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "test ended") {
		t.Errorf("got %v, want that it has ended", err)
	}
}
