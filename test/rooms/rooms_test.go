// Package rooms tests the rule for imports: a room imports only what its row in
// the table of docs/architecture.md allows.
package rooms

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/weir-metrics/weir/"

// room says which of our packages the packages of a folder may import, apart
// from those in the same folder and below it.
type room struct {
	folder string // the room; with a trailing /*, each sub-folder is a room
	may    []string
}

var table = []room{
	{"internal/humanize", nil}, // every room may import it
	{"internal/usererror", nil},
	{"internal/options", []string{"metric"}},
	{"internal/feature", []string{"metric", "cluster", "internal/usererror"}},
	{"internal/history", []string{"metric", "cluster", "internal/trace"}},
	{"internal/trace", nil},
	{"internal/recording", []string{"metric", "cluster"}},
	{"metric", nil},
	{"sources/*", []string{"metric", "cluster", "internal/recording", "internal/options"}},
	{"processors/*", []string{"metric", "cluster"}},
	{"sinks/*", []string{"metric", "cluster", "internal/recording", "internal/options", "sinks/push", "sinks/lockfile"}},
	{"manager", []string{"metric", "cluster"}},
	{"cluster", []string{"metric"}},
	{"explain", []string{"metric", "cluster"}},
	{"api/*", []string{"metric", "cluster", "explain", "autoscaler", "eviction", "resize", "internal/history", "internal/recording", "internal/feature", "internal/options", "internal/usererror", "api/replicas", "api/weirdev", "api/rights", "api/metricsgroup"}},
	{"autoscaler", []string{"metric", "cluster", "explain", "internal/history", "internal/trace", "internal/recording", "internal/feature", "internal/usererror"}},
	{"eviction", []string{"metric", "cluster", "internal/feature", "internal/usererror"}},
	{"resize", []string{"metric", "cluster", "autoscaler", "internal/history", "internal/trace"}},
	{"cmd", []string{"*"}},
	{"docs/examples", []string{"metric", "cluster", "internal/options", "api/rights", "api/weirdev"}},
	{"deploy", []string{"*"}}, // tests of the manifests
	{"test", []string{"*"}},
}

// heavyModules are third-party packages that only these folders may import.
var heavyModules = map[string][]string{
	"k8s.io/client-go/informers":        {"cluster"},
	"k8s.io/client-go/listers":          {"cluster"},
	"github.com/google/cadvisor":        {"sources/host", "api/kubeletapi"},
	"github.com/spf13/cobra":            {"cmd", "deploy/man", "test"},
	"github.com/cockroachdb/datadriven": {"test"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (list []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// roomOf returns the path of the room of one of our packages, and its row.
func roomOf(path string) (string, *room) {
	for i := range table {
		r := &table[i]
		folder, each := strings.CutSuffix(r.folder, "/*")
		if path != folder && !strings.HasPrefix(path, folder+"/") {
			continue
		}
		if !each {
			return folder, r
		}
		parts := strings.SplitN(path, "/", 3)
		if len(parts) < 2 {
			return folder, r
		}
		return parts[0] + "/" + parts[1], r
	}
	return "", nil
}

func TestNobodyImportsSideways(t *testing.T) {
	list := packages(t)
	if len(list) < 5 {
		t.Fatalf("only %d packages found: the test looks in the wrong place", len(list))
	}
	for _, p := range list {
		path := strings.TrimPrefix(p.ImportPath, module)
		from, rule := roomOf(path)
		if rule == nil {
			t.Errorf("%s lies in no room of the table: find it one, or give the table (here and in docs/architecture.md) a row", path)
			continue
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, module) {
				checkHeavyImports(t, path, imported)
				continue
			}
			imported = strings.TrimPrefix(imported, module)
			if !allowed(from, rule, imported) {
				t.Errorf("%s imports %s: %s may import of ours only %v", path, imported, from, rule.may)
			}
		}
	}
}

func allowed(from string, rule *room, imported string) bool {
	to, _ := roomOf(imported)
	if to == from || to == "internal/humanize" || strings.HasPrefix(to, from+"/") {
		return true
	}
	for _, may := range rule.may {
		if may == "*" || may == to {
			return true
		}
	}
	return false
}

func checkHeavyImports(t *testing.T, path, imported string) {
	for module, folders := range heavyModules {
		if imported != module && !strings.HasPrefix(imported, module+"/") {
			continue
		}
		ok := false
		for _, f := range folders {
			ok = ok || path == f || strings.HasPrefix(path, f+"/")
		}
		if !ok {
			t.Errorf("%s imports %s, which comes in only through %v", path, imported, folders)
		}
	}
}

// TestPluginIsSmall checks that kubectl-weir, which users download, has no package that makes up most of a
// server: the types and clients of every API, gRPC, the log.
func TestPluginIsSmall(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"cmd/kubectl-weir").Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for dep := range strings.Lines(string(out)) {
		switch dep = strings.TrimSpace(dep); dep {
		case "k8s.io/client-go/kubernetes", "k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/discovery", "google.golang.org/grpc", "go.uber.org/zap":
			t.Errorf("kubectl-weir imports %s: move what it needs to a package without it", dep)
		}
	}
}
