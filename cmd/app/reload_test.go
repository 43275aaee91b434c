package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/weir-metrics/weir/cmd/app/configfile"
	"github.com/weir-metrics/weir/cmd/app/logging"
)

// The level of the log follows the file of --config. Other changes need a restart, which the log
// says. A file with a mistake changes nothing. Flags on the command line have priority.
func TestConfigReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.yaml")
	save := func(settings string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("apiVersion: weir.dev/v1alpha1\nkind: RunConfiguration\n"+settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("max-reads: 7\nmetric-resolution: soon\n") // the command line has this flag
	cmd := newRun()
	if err := cmd.ParseFlags([]string{"--config=" + path, "--metric-resolution=7s"}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.PreRunE(cmd, nil); err != nil {
		t.Fatal(err)
	}
	file, err := configfile.NewReloader(cmd, newRun)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, level, err := logging.New(logging.Default(), &out)
	if err != nil {
		t.Fatal(err)
	}
	c := newConfigReload(file, log, level, logging.Default(), prometheus.NewRegistry())
	for _, step := range []struct {
		settings string
		level    zapcore.Level
		result   string // which counter grows
		logged   string
	}{
		{"max-reads: 7\n", zapcore.InfoLevel, "", ""},
		{"max-reads: 7\nlog-level: debug\n", zapcore.DebugLevel, "ok", "is used"},
		{"max-reads: 8\nlog-level: warn\nmax-read: 9\n", zapcore.DebugLevel, "error", "did you mean max-reads?"},
		{"max-reads: 8\nlog-level: verbose\n", zapcore.DebugLevel, "error", "there are debug, info, warn, error"},
		{"max-reads: 8\nlog-level: warn\n", zapcore.WarnLevel, "restart", "max-reads"},
		{"max-reads: 8\nlog-level: warn\nmetric-resolution: 30s\n", zapcore.WarnLevel, "", ""},
		{"max-reads: 8\nlog-level: warn\nv: 1\n", zapcore.DebugLevel, "ok", "is used"},
		{"max-reads: 8\n", zapcore.InfoLevel, "ok", "is used"},
	} {
		save(step.settings)
		want := map[string]float64{}
		for _, result := range []string{"ok", "restart", "error"} {
			want[result] = testutil.ToFloat64(c.reloads.WithLabelValues(result))
		}
		if step.result != "" {
			want[step.result]++
		}
		out.Reset()
		c.reload()
		c.reload() // each version counts once
		for result, n := range want {
			if got := testutil.ToFloat64(c.reloads.WithLabelValues(result)); got != n {
				t.Errorf("%q: result %s was counted %v times, want %v", step.settings, result, got, n)
			}
		}
		if level.Level() != step.level {
			t.Errorf("%q: the level is %v, want %v", step.settings, level, step.level)
		}
		if got := out.String(); !strings.Contains(got, step.logged) || (got == "") != (step.logged == "") {
			t.Errorf("%q: the log says %q, want %q", step.settings, got, step.logged)
		}
	}
}

// The changes of --apis count, although this flag has no value but calls a function.
func TestConfigReloadOfFunctionFlag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.yaml")
	save := func(settings string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("apiVersion: weir.dev/v1alpha1\nkind: ServerConfiguration\n"+settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("apis: custom\n")
	fresh := func() *cobra.Command { return newServer(func(string) string { return "" }) }
	cmd := fresh()
	if err := cmd.ParseFlags([]string{"--config=" + path}); err != nil {
		t.Fatal(err)
	}
	file, err := configfile.NewReloader(cmd, fresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ settings, changed string }{{"apis: custom\n", ""}, {"apis: custom,model\n", "apis"}, {"", "apis"}} {
		save(step.settings)
		var got []string
		if err := file.Reload(func(_ *pflag.FlagSet, changed []string) error { got = changed; return nil }); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, ", ") != step.changed {
			t.Errorf("%q: %q changed, want %q", step.settings, got, step.changed)
		}
	}
}
