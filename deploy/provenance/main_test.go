package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestCommitOf(t *testing.T) {
	for _, c := range []struct{ revision, modified, want string }{
		{"", "", "error: it names no commit"},
		{"3f2a", "true", "error: it was built with changes"},
		{"3f2a", "false", "3f2a"},
	} {
		commit, err := commitOf(&debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: c.revision}, {Key: "vcs.modified", Value: c.modified}}})
		got := commit
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("commitOf(%q, modified %q): got %q, want %q", c.revision, c.modified, got, c.want)
		}
	}
}

func TestRun(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{text}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "no file is a Go program") {
		t.Errorf("without a Go program: got %v, want an error that says so", err)
	}
	if err := run([]string{text + ".gone"}, &bytes.Buffer{}); err == nil {
		t.Error("a file that does not exist: want an error")
	}
}

// TestStatement builds a program of a new repository, with and without a change that is not
// committed.
func TestStatement(t *testing.T) {
	repository := t.TempDir()
	command := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = repository
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GOFLAGS=-buildvcs=true")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(repository, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("go.mod", "module example.com/program\n")
	write("main.go", "package main\nfunc main() {}\n")
	write(".gitignore", "/program\n/notes\n")
	command("git", "init", "-q")
	command("git", "add", ".")
	command("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a program")
	command("go", "build", "-o", "program", ".")
	notes, program := write("notes", "text"), filepath.Join(repository, "program")

	var out bytes.Buffer
	if err := run([]string{notes, program}, &out); err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"], command("git", "rev-parse", "HEAD"); got != want {
		t.Errorf("commit: got %s, want %s", got, want)
	}
	if len(s.Subject) != 2 || s.Subject[0].Name != "notes" || s.Subject[1].Name != "program" {
		t.Fatalf("files: got %v, want notes and program", s.Subject)
	}
	if got, want := s.Subject[1].Digest["sha256"], strings.Fields(command("sha256sum", program))[0]; got != want {
		t.Errorf("digest of the program: got %s, want %s", got, want)
	}

	write("main.go", "package main\nfunc main() { println() }\n")
	command("go", "build", "-o", "program", ".")
	if err := run([]string{program}, &out); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("with a change that is not committed: got %v, want an error that says so", err)
	}
}
