package transcript_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

const root = "../.."

// pipeline are the folders with the transcripts of processors.
var pipeline = []string{"processors/identity/testdata", "processors/rate/testdata", "processors/enrich/testdata", "processors/aggregate/testdata"}

// elsewhere has the reasons that no processor gives, because there is no batch,
// and the folders of their transcripts.
var elsewhere = map[metric.Reason]string{
	metric.NodeUnknown:       "explain/testdata",
	metric.NodeNotScrapedYet: "explain/testdata",
}

// TestEveryReasonHasATranscript checks that every reason is in the output of a
// transcript.
func TestEveryReasonHasATranscript(t *testing.T) {
	given := map[string]map[string]bool{}
	for _, dir := range append(slices.Clone(pipeline), "explain/testdata") {
		given[dir] = words(outcomes(t, dir))
	}
	for i := range metric.NumReasons {
		r := metric.Reason(i)
		if r == metric.Unjudged || r == metric.Measured {
			continue
		}
		dirs := pipeline
		if dir, ok := elsewhere[r]; ok {
			dirs = []string{dir}
		}
		if !slices.ContainsFunc(dirs, func(dir string) bool { return given[dir][r.String()] }) {
			t.Errorf("no transcript ends in %v: write one in %s", r, strings.Join(dirs, " or "))
		}
	}
}

// TestEveryRuleHasATranscript checks that each rule of identity is in a verdict
// of a transcript.
func TestEveryRuleHasATranscript(t *testing.T) {
	given := outcomes(t, "processors/identity/testdata")
	rules := rulesOf(t, "processors/identity")
	if len(rules) < 8 {
		t.Fatalf("found only the rules %q in identity's code: has their form changed?", rules)
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(given, func(line string) bool {
			_, after, ok := strings.Cut(line, "(rule "+rule)
			return ok && after != "" && strings.ContainsRune(",)", rune(after[0]))
		}) {
			t.Errorf("no transcript of identity names the rule %q", rule)
		}
	}
}

// TestTranscriptsOpenWithProse checks that a transcript begins with a
// description of what happens.
func TestTranscriptsOpenWithProse(t *testing.T) {
	for _, dir := range pipeline {
		for _, path := range files(t, dir) {
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			prose, _, _ := strings.Cut(string(body), "\n----")
			if lines := strings.Split(prose, "\n"); !strings.HasPrefix(lines[0], "# ") || len(lines[0]) < 30 {
				t.Errorf("%s begins with %q: say in prose what happens", path, lines[0])
			}
		}
	}
}

// outcomes returns the output lines of the transcripts in dir: the lines after
// ---- until the next empty line.
func outcomes(t *testing.T, dir string) (lines []string) {
	t.Helper()
	for _, path := range files(t, dir) {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out, blank := false, "" // after a double ----, the output may contain empty lines, and ends with another double ----
		for line := range strings.Lines(string(body)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "----" && !out:
				out, blank = true, ""
			case line == "----" && blank == "":
				blank = line
			case out && line == blank:
				out = false
			case out:
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d transcripts in %s (%v)", len(paths), dir, err)
	}
	return paths
}

func words(lines []string) map[string]bool {
	all := map[string]bool{}
	for _, line := range lines {
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') }) {
			all[word] = true
		}
	}
	return all
}

// rulesOf returns the names of identity's rules, as they are in the evidence.
func rulesOf(t *testing.T, dir string) (rules []string) {
	t.Helper()
	name := regexp.MustCompile(`(?m)^\s*rule[A-Z]\w*\s*= "([^"]+)"`)
	for _, path := range files(t, dir) {
		if filepath.Ext(path) != ".go" {
			continue
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(body), -1) {
			rules = append(rules, m[1])
		}
	}
	return rules
}
