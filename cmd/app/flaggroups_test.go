package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// Each flag of weir server is in its help or on the page that the help refers to, and not in both.
func TestHelpShowsEveryFlag(t *testing.T) {
	page := func(args ...string) string {
		var out bytes.Buffer
		if status := cli.Main(t.Context(), NewCommand(nothing, ""), args, &out, &out); status != 0 {
			t.Fatalf("weir %q: exit status %d:\n%s", args, status, out.String())
		}
		return out.String()
	}
	help, more := page("server", "--help"), page("help", secureTopic)
	if !strings.Contains(help, "weir help "+secureTopic) {
		t.Errorf("the help does not refer to weir help %s", secureTopic)
	}
	for name := range commonSecureFlags {
		if newServer(nothing).Flags().Lookup(name) == nil {
			t.Errorf("--%s is explained, and there is none", name)
		}
	}
	newServer(nothing).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		has := func(page string) bool { return strings.Contains(page, "--"+f.Name+" ") }
		if has(help) == has(more) {
			t.Errorf("--%s is in the help: %v, on the page beside it: %v; want one of the two", f.Name, has(help), has(more))
		}
	})
}
