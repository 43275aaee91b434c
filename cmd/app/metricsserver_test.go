package app

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/api/server"
)

// theirs is a flag of metrics-server.
type theirs struct{ name, kind, shorthand string }

// theirFlags returns every flag of metrics-server.
func theirFlags(t *testing.T) []theirs {
	t.Helper()
	f, err := os.Open("testdata/metrics-server/flags-v0.9.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []theirs
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		flag := theirs{name: words[0], kind: words[1]}
		if len(words) > 2 {
			flag.shorthand = words[2]
		}
		all = append(all, flag)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every flag of metrics-server is either a flag of api/server or in the table metricsServerFlags,
// and never in both.
func TestEveryFlagOfMetricsServer(t *testing.T) {
	serving := pflag.NewFlagSet("serving", pflag.ContinueOnError)
	server.NewOptions().AddFlags(serving)
	own := newServer(nothing).Flags()
	all := theirFlags(t)
	if len(all) != 103 {
		t.Errorf("metrics-server has %d flags, want 103: is the list cut?", len(all))
	}
	for _, f := range all {
		i := slices.IndexFunc(metricsServerFlags, func(c metricsServerFlag) bool { return c.flag == f.name })
		ours := serving.Lookup(f.name)
		switch {
		case i < 0 && ours == nil:
			t.Errorf("--%s of metrics-server is neither honoured nor refused", f.name)
			continue
		case i >= 0 && ours != nil:
			t.Errorf("--%s has a counterpart and is api/server's too", f.name)
		case i >= 0 && f.name == "version":
			continue // cobra adds it when the command runs
		case i >= 0:
			ours = own.Lookup(f.name)
		}
		if ours == nil {
			t.Errorf("weir server has no --%s, which has a counterpart", f.name)
			continue
		}
		if f.shorthand != "" && ours.Shorthand != f.shorthand {
			t.Errorf("--%s: shorthand %q, want %q", f.name, ours.Shorthand, f.shorthand)
		}
		if got, want := ours.NoOptDefVal != "", f.kind == "bool"; got != want {
			t.Errorf("--%s: goes without a value: %v, want %v", f.name, got, want)
		}
	}
	for _, c := range metricsServerFlags {
		if !slices.ContainsFunc(all, func(f theirs) bool { return f.name == c.flag }) {
			t.Errorf("--%s is no flag of metrics-server's", c.flag)
		}
	}
}

// A refused flag says what to use instead, and accepts its harmless values.
func TestRefusedFlags(t *testing.T) {
	for _, c := range metricsServerFlags {
		if c.fate != refused {
			continue
		}
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		addUnusedFlags(flags)
		for _, value := range c.harmless {
			if err := flags.Parse([]string{"--" + c.flag + "=" + value}); err != nil {
				t.Errorf("--%s=%s: %v, want it accepted", c.flag, value, err)
			}
		}
		err := flags.Parse([]string{"--" + c.flag + "=something"})
		if err == nil || !strings.Contains(err.Error(), c.means) {
			t.Errorf("--%s=something: got error %v, want one that says %q", c.flag, err, c.means)
		}
		if !strings.HasPrefix(c.means, "use ") && !strings.HasPrefix(c.means, "leave it out: ") {
			t.Errorf("--%s: %q does not say what to do", c.flag, c.means)
		}
	}
}

// The page says the same about every flag as the table.
func TestPageListsEveryFlag(t *testing.T) {
	page, err := os.ReadFile("../../docs/from-metrics-server.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| metrics-server's flag | in weir | meaning, or what to do |\n| --- | --- | --- |\n")
	for _, c := range metricsServerFlags {
		option := ""
		if c.option != "" {
			option = fmt.Sprintf(" (option `%s`)", c.option)
		}
		fmt.Fprintf(&want, "| `--%s` | %s%s | %s |\n", c.flag, c.fate, option, c.means)
	}
	if !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/from-metrics-server.md lags behind the table; put this into it:\n%s", &want)
	}
}
