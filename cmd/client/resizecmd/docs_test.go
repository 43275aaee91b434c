package resizecmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// aside matches what differs between transcripts and documentation: durations, and the IDs of
// containers.
var aside = regexp.MustCompile(`took [0-9.sµm]+|\([0-9a-f]{12},`)

// The output in the documentation is the output of the program.
func TestDocumentation(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		return aside.ReplaceAllString(string(b), "…")
	}
	said := read("testdata/recommend.txt") + read("testdata/apply.txt") + read("testdata/applyworkload.txt") + read("testdata/replay.txt") + read("testdata/reserved.txt") + read("testdata/workloads.txt")
	for page, want := range map[string]int{"../../../docs/resize.md": 14} {
		shown := 0
		for _, block := range strings.Split(read(page), "```console\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			command, output, _ := strings.Cut(block, "\n")
			if !strings.HasPrefix(command, "$ weir resize ") || output == "" {
				continue
			}
			shown++
			for _, part := range strings.Split(output, "...\n") {
				if !strings.Contains(said, part) {
					t.Errorf("%s: after %s it shows what the transcripts do not have:\n%s", page, command, part)
				}
			}
		}
		if shown != want {
			t.Errorf("%s: got %d examples, want %d", page, shown, want)
		}
	}
}
