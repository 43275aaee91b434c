package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	codeOfLine = regexp.MustCompile("`([a-z0-9/]+)`")
)

// TestPromisesNameTests checks that each test that docs/security.md, docs/reliability.md and docs/death.md name is in
// one of the packages that the same line names.
func TestPromisesNameTests(t *testing.T) {
	const root = "../.."
	named := 0
	for _, page := range []string{"security.md", "reliability.md", "death.md"} {
		for line := range strings.Lines(read(t, filepath.Join(root, "docs", page))) {
			var code strings.Builder
			for _, m := range codeOfLine.FindAllStringSubmatch(line, -1) {
				files, err := filepath.Glob(filepath.Join(root, m[1], "*_test.go"))
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range files {
					b, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					code.Write(b)
				}
			}
			for _, name := range testName.FindAllString(line, -1) {
				named++
				if !strings.Contains(code.String(), "func "+name+"(") {
					t.Errorf("%s names %s, which is in no package that the line names:\n%s", page, name, line)
				}
			}
		}
	}
	if named < 50 {
		t.Fatalf("only %d tests are named: the test looks in the wrong place", named)
	}
}
