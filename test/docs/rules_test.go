package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	whereCell = regexp.MustCompile("`([a-z0-9_/*]+\\.go)`: (`\\w+`(?:, `\\w+`)*)")
	quoted    = regexp.MustCompile("`(\\w+)`")
)

// TestRulesAreWhereThePageNames checks the table "Where rules are written" of docs/architecture.md.
// Each row names files, and functions, types or tables that these files declare. A path with * names each
// file that it matches.
func TestRulesAreWhereThePageNames(t *testing.T) {
	const root, cure = "../..", "\n\tCorrect this row of \"Where rules are written\" in docs/architecture.md; test/docs/rules_test.go checks it."
	_, section, _ := strings.Cut(read(t, filepath.Join(root, "docs/architecture.md")), "\n## Where rules are written\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		question, where, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !ok || question == "question" || strings.HasPrefix(question, "---") {
			continue
		}
		rows++
		cells := whereCell.FindAllStringSubmatch(where, -1)
		if len(cells) == 0 || len(cells) != strings.Count(where, ".go`") {
			t.Errorf("%q: the row does not name functions of each file, want `path/file.go`: `function`, `function`"+cure, question)
		}
		for _, cell := range cells {
			files, err := filepath.Glob(filepath.Join(root, cell[1]))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) == 0 {
				t.Errorf("%q: there is no file %s"+cure, question, cell[1])
			}
			for _, file := range files {
				for _, name := range quoted.FindAllStringSubmatch(cell[2], -1) {
					if !slices.Contains(declarations(t, file), name[1]) {
						t.Errorf("%q: %s does not declare %s%s"+cure, question, strings.TrimPrefix(file, root+"/"), name[1], elsewhere(t, file, name[1]))
					}
				}
			}
		}
	}
	if rows < 20 {
		t.Fatalf("got %d rows, want at least 20: the test looks in the wrong place", rows)
	}
}

// declarations returns the names of the functions, methods, types and variables that a file
// declares.
func declarations(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// elsewhere names the files of the same folder that declare name.
func elsewhere(t *testing.T, file, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !slices.Contains(declarations(t, f), name) })
	if len(files) == 0 {
		return ""
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return " (but " + strings.Join(files, " and ") + " does)"
}
