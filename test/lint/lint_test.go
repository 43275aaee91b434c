// Package lint checks names, comments and texts of the product's code: Go outside test/, without
// tests and generated files. CONTRIBUTING.md has the rules. testdata/exceptions.txt lists what breaks
// them today, and go test ./test/lint -rewrite writes it again. The list becomes shorter, never longer.
package lint

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const (
	root       = "../.."
	exceptions = "testdata/exceptions.txt"
)

var rewrite = flag.Bool("rewrite", false, "write "+exceptions+" again")

// functionWords are words of grammar, and verbs of report. A variable is named by a noun. Some words of
// grammar that Go programs use as names are not in the list: all, from, in, it (an item), more, to.
var functionWords = words(`are as be been but by did does gave gives goes had has have he hers him his is of said says she shall should
	than that their them then there they this though told tells took us was went were who whom whose why with within without would`)

// turns are phrases that a text for users does not have, each with a better one.
var turns = []struct{ phrase, instead string }{
	{" is no ", "is not a"}, {" are no ", "are not"}, {" was no ", "was not a"},
	{" tell ", "show, report"}, {" tells ", "shows, reports"}, {" told ", "reported"},
	{" gives ", "returns, shows"}, {" gave ", "returned"},
	{" say ", "show, set"}, {" says ", "shows, reports, states"}, {" said ", "reported"},
	{" speaks ", "reports, uses"}, {" hears ", "receives"}, {" heard ", "received"},
	{" goes by ", "uses"}, {" go by ", "use"}, {" went by ", "used"},
	{" brings ", "contains"}, {" anew ", "again"}, {" let go of ", "release"}, {" lets go of ", "releases"},
	{" is at it ", "is working"}, {" overtaken ", "replaced"}, {" unasked ", "unexpectedly"}, {" none such ", "no"},
	{" is too much ", "unexpected"},
}

// right are phrases with a turn in them that are English.
var right = []string{" there is no ", " There is no ", " there are no ", " There are no ", " there was no ", " gave HTTP response "}

// texts are what says something, in comments: a page, a message.
var texts = []string{".md", "README", "page", "pages", "message", "messages", "sentence", "sentences", "text", "texts", "comment", "log", "error", "errors", "help", "documentation", "KEP", "warning"}

// allowedInComments are turns that only users' texts must not have.
var allowedInComments = words("gives gave")

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

type finding struct {
	file, rule, what string
}

func (f finding) String() string { return f.file + ": " + f.rule + ": " + f.what }

// linter collects what breaks the rules.
type linter struct {
	counts    map[finding]int
	lines     map[finding]int // the first line of each
	files     *token.FileSet
	receivers map[string]map[string][]finding // by type and name
}

func (l *linter) add(file, rule, what string, at token.Pos) {
	f := finding{file, rule, what}
	if l.counts[f]++; l.counts[f] == 1 {
		l.lines[f] = l.files.Position(at).Line
	}
}

func TestNames(t *testing.T) {
	l := &linter{counts: map[finding]int{}, lines: map[finding]int{}, files: token.NewFileSet(), receivers: map[string]map[string][]finding{}}
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == "test" || d.Name() == "testdata" || rel == "bin" || len(d.Name()) > 2 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		n++
		return l.file(path, rel)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 300 {
		t.Fatalf("got %d files, want at least 300: the test looks in the wrong place", n)
	}
	l.checkReceivers()
	l.report(t)
}

func (l *linter) file(path, rel string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(l.files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	for _, c := range parsed.Comments {
		l.text(rel, "comment", c.Text(), c.Pos())
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, x := range n.Lhs {
					l.variable(rel, x)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				l.variable(rel, n.Key)
				l.variable(rel, n.Value)
			}
		case *ast.ValueSpec:
			for _, x := range n.Names {
				l.variable(rel, x)
			}
		case *ast.Field:
			for _, x := range n.Names {
				l.variable(rel, x)
			}
		case *ast.FuncDecl:
			l.receiver(rel, parsed.Name.Name, n)
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if s, err := strconv.Unquote(n.Value); err == nil {
					l.text(rel, "text", s, n.Pos())
				}
			}
		}
		return true
	})
	return nil
}

func (l *linter) variable(file string, x ast.Expr) {
	if id, ok := x.(*ast.Ident); ok && functionWords[id.Name] {
		l.add(file, "name", id.Name, id.Pos())
	}
}

// text looks for turns in a text.
func (l *linter) text(file, rule, s string, at token.Pos) {
	s = " " + strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(".,:;()\"`", r) }), " ") + " "
	for _, turn := range turns {
		for i := 0; ; {
			j := strings.Index(s[i:], turn.phrase)
			if j < 0 {
				break
			}
			i += j
			if slices.ContainsFunc(right, func(p string) bool {
				return strings.HasSuffix(s[:i+len(turn.phrase)], p) || strings.HasPrefix(s[i:], p)
			}) || strings.HasPrefix(s[i+len(turn.phrase):], "longer ") {
				i += len(turn.phrase) - 1
				continue
			}
			what := strings.TrimSpace(turn.phrase)
			switch {
			case rule == "text":
				l.add(file, rule, strconv.Quote(around(s, i, len(turn.phrase)))+" ("+turn.instead+")", at)
			case !allowedInComments[what] && !isOfText(s[:i]):
				l.add(file, rule, strconv.Quote(what)+" ("+turn.instead+")", at)
			}
			i += len(turn.phrase) - 1
		}
	}
}

// isOfText reports whether before, which precedes a verb, ends with a kind of text.
func isOfText(before string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasSuffix(before, t) })
}

// around returns the phrase at i with a word before and after it.
func around(s string, i, n int) string {
	from := strings.LastIndexByte(s[:i], ' ') + 1
	to := i + n
	if j := strings.IndexByte(s[to:], ' '); j >= 0 {
		to += j
	}
	return strings.TrimSpace(s[from:to])
}

// receiver remembers the receiver of a method.
func (l *linter) receiver(file, pkg string, f *ast.FuncDecl) {
	if f.Recv == nil || len(f.Recv.List) != 1 || len(f.Recv.List[0].Names) != 1 {
		return
	}
	x := f.Recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
			continue
		case *ast.IndexExpr:
			x = t.X
			continue
		case *ast.IndexListExpr:
			x = t.X
			continue
		}
		break
	}
	id, ok := x.(*ast.Ident)
	name := f.Recv.List[0].Names[0]
	if !ok || name.Name == "_" {
		return
	}
	key := filepath.Dir(file) + "." + id.Name
	if l.receivers[key] == nil {
		l.receivers[key] = map[string][]finding{}
	}
	at := finding{file, "receiver", "(" + name.Name + " " + id.Name + ")"}
	l.receivers[key][name.Name] = append(l.receivers[key][name.Name], at)
	l.lines[at] = l.files.Position(name.Pos()).Line
}

// checkReceivers wants one receiver name for each type, that the type's name explains.
func (l *linter) checkReceivers() {
	for key, names := range l.receivers {
		typeName := key[strings.LastIndexByte(key, '.')+1:]
		usual := slices.MaxFunc(slices.Sorted(maps.Keys(names)), func(a, b string) int { return len(names[a]) - len(names[b]) })
		for name, at := range names {
			for _, f := range at {
				switch {
				case !explains(typeName, name):
					l.counts[finding{f.file, "receiver", f.what + " is not from the type's name"}]++
				case name != usual:
					l.counts[finding{f.file, "receiver", f.what + ": most methods have " + usual}]++
				}
			}
		}
	}
}

// explains reports whether name is the initials of a type, the beginning of its name, or the
// beginning of one of its words.
func explains(typeName, name string) bool {
	var parts []string
	start := 0
	for i, r := range typeName {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(rune(typeName[i-1])) || i+1 < len(typeName) && unicode.IsLower(rune(typeName[i+1]))) {
			parts, start = append(parts, typeName[start:i]), i
		}
	}
	parts = append(parts, typeName[start:])
	initials := ""
	for _, p := range parts {
		initials += strings.ToLower(p[:1])
		if strings.HasPrefix(strings.ToLower(p), name) {
			return true
		}
	}
	return strings.HasPrefix(initials, name) || strings.HasPrefix(strings.ToLower(typeName), strings.ToLower(name))
}

// report compares what was found with the exceptions.
func (l *linter) report(t *testing.T) {
	got := slices.SortedFunc(maps.Keys(l.counts), func(a, b finding) int { return strings.Compare(a.String(), b.String()) })
	if *rewrite {
		var b bytes.Buffer
		for _, f := range got {
			fmt.Fprintf(&b, "%s ×%d\n", f, l.counts[f])
		}
		if err := os.WriteFile(exceptions, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	allowed := map[string]int{}
	text, err := os.ReadFile(exceptions)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		what, count, ok := strings.Cut(strings.TrimSpace(line), " ×")
		n, err := strconv.Atoi(count)
		if !ok || err != nil {
			t.Fatalf("%s: got %q, want FILE: RULE: WHAT ×COUNT", exceptions, line)
		}
		allowed[what] = n
	}
	for _, f := range got {
		if n := l.counts[f]; n > allowed[f.String()] {
			t.Errorf("%s:%d: %s: %s: %d times, allowed %d", f.file, l.lines[f], f.rule, f.what, n, allowed[f.String()])
		}
	}
}
