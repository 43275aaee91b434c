package dashboards

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
)

var rewrite = flag.Bool("rewrite", false, "write the files")

const dir = "../kustomize/components/dashboards"

// TestFiles checks that the files are those of All, and that there are no others.
func TestFiles(t *testing.T) {
	want := map[string]bool{}
	for _, d := range All() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, d.Name+".json")
		want[file] = true
		if *rewrite {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s (-want +got; -rewrite writes it):\n%s", file, diff)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	kustomization, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f] {
			t.Errorf("%s is no dashboard of All", f)
		}
		if !strings.Contains(string(kustomization), "- "+filepath.Base(f)+"\n") {
			t.Errorf("kustomization.yaml does not have %s", filepath.Base(f))
		}
	}
}

// TestQueries checks that each query is PromQL and that each panel has what its kind needs. test/local
// checks that a Prometheus has data for each.
func TestQueries(t *testing.T) {
	fill := strings.NewReplacer("$namespace", ".*", "$__rate_interval", "1m")
	p := parser.NewParser(parser.Options{})
	for _, d := range All() {
		for _, row := range d.Rows {
			if columns%len(row.Panels) != 0 {
				t.Errorf("%s: %d panels do not fill a row", d.Name, len(row.Panels))
			}
			for _, panel := range row.Panels {
				if _, err := p.ParseExpr(fill.Replace(panel.Query)); err != nil {
					t.Errorf("%s, %s: %v", d.Name, panel.Title, err)
				}
				if (row.Kind == TimeSeries) != (panel.Legend != "") {
					t.Errorf("%s, %s: a %s with the legend %q", d.Name, panel.Title, row.Kind, panel.Legend)
				}
			}
		}
	}
}
