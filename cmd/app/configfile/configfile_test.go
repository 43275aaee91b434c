package configfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newCommand returns a command with a flag of each kind.
func newCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "server"}
	f := cmd.Flags()
	f.Duration("metric-resolution", 0, "")
	f.StringSlice("apis", []string{"resource", "custom"}, "")
	f.String("lease", "weir", "")
	f.Int("max-reads", 128, "")
	f.Bool("share-reads", false, "")
	Add(cmd)
	return cmd
}

// What write prints is a file that sets the same.
func TestWrittenSettingsAreReadAgain(t *testing.T) {
	f := func(all bool, args ...string) {
		t.Helper()
		first, second := newCommand(), newCommand()
		if err := first.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := write(&text, first, all); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Apply(second, file); err != nil {
			t.Errorf("%v\n%s", err, &text)
		}
		if diff := cmp.Diff(values(first), values(second)); diff != "" {
			t.Errorf("flags before (-) and after (+):\n%s\n%s", diff, &text)
		}
	}
	for _, all := range []bool{false, true} {
		f(all)
		f(all, "--metric-resolution=90s", "--apis=external", "--apis=weir", "--share-reads")
		f(all, "--lease=", "--max-reads=-1", "--apis=")
		f(all, "--lease=a: b # c\nd", "--apis=[x]")
	}
}

func values(cmd *cobra.Command) map[string]string {
	all := map[string]string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all[f.Name] = f.Value.String() })
	return all
}

// Whatever a file has, it is applied or it has a mistake; nothing is applied to a flag that was given.
func FuzzApply(f *testing.F) {
	f.Add("apiVersion: weir.dev/v1alpha1\nkind: ServerConfiguration\nlease: other\napis: [a, b]\n")
	f.Add("a: &x [*x]")
	f.Add("lease: {a: b}\n? [complex]\n: 1\n--- \n")
	f.Fuzz(func(t *testing.T, content string) {
		cmd := newCommand()
		if err := cmd.ParseFlags([]string{"--lease=mine"}); err != nil {
			t.Fatal(err)
		}
		root, err := parse("file", []byte(content))
		if err != nil {
			return
		}
		p := parser{file: "file", flags: cmd.Flags(), given: givenFlags(cmd.Flags())}
		p.apply(root, Kind(cmd))
		if got := cmd.Flags().Lookup("lease").Value.String(); got != "mine" {
			t.Errorf("%q changed a given flag to %q", content, got)
		}
	})
}
