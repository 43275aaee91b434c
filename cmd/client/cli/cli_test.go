package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

func newRoot(err error) *cobra.Command {
	root := &cobra.Command{Use: "mill", Args: Subcommand, RunE: func(*cobra.Command, []string) error { return nil }}
	grind := &cobra.Command{Use: "grind", RunE: func(*cobra.Command, []string) error { return err }}
	grind.Flags().Bool("finely", false, "")
	root.AddCommand(grind)
	return root
}

func TestMainSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	jam := errors.New("the wheel is jammed")
	for name, test := range map[string]struct {
		err  error
		args []string
		want string
	}{
		"nothing":            {nil, []string{"grind"}, "status 0\n"},
		"an error":           {jam, []string{"grind"}, "error: the wheel is jammed\nstatus 1\n"},
		"a hint":             {Hintf(jam, "Open the %s.", "sluice"), []string{"grind"}, "error: the wheel is jammed\nOpen the sluice.\nstatus 1\n"},
		"a hint inside":      {fmt.Errorf("grind: %w", Hintf(jam, "Open it.")), []string{"grind"}, "error: grind: the wheel is jammed\nOpen it.\nstatus 1\n"},
		"what a server said": {Hintf(errors.New("no\x1b[2J:\nno"), "Try\n\x07again."), []string{"grind"}, "error: no\\x1b[2J:\nno\nTry\n\\aagain.\nstatus 1\n"},
		"a missing number":   {ErrMissing, []string{"grind"}, "status 2\n"},
		"usage":              {Usage(jam), []string{"grind"}, "error: the wheel is jammed\nRun \"mill grind --help\" to see what there is.\nstatus 1\n"},
		"a flag":             {nil, []string{"grind", "--finley"}, "error: unknown flag: --finley: did you mean --finely?\nRun \"mill grind --help\" to see what there is.\nstatus 1\n"},
		"another flag":       {nil, []string{"grind", "--xyz"}, "error: unknown flag: --xyz\nRun \"mill grind --help\" to see what there is.\nstatus 1\n"},
		"a command":          {nil, []string{"gridn"}, "error: the command after mill cannot be \"gridn\": did you mean \"grind\"?\nRun \"mill --help\" to see what there is.\nstatus 1\n"},
		"help of a command":  {nil, []string{"gridn", "--help"}, "error: the command after mill cannot be \"gridn\": did you mean \"grind\"?\nRun \"mill --help\" to see what there is.\nstatus 1\n"},
		"cancelled":          {context.Canceled, []string{"grind"}, "error: context canceled\nstatus 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			status := Main(t.Context(), newRoot(test.err), test.args, &out, &out)
			fmt.Fprintf(&out, "status %d\n", status)
			if out.String() != test.want {
				t.Errorf("got\n%swant\n%s", &out, test.want)
			}
		})
	}
}

func TestInterruptionIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if status := Main(ctx, newRoot(fmt.Errorf("serve: %w", context.Canceled)), []string{"grind"}, &out, &out); status != 0 || out.Len() > 0 {
		t.Errorf("got status %d and %q, want 0 and silence", status, &out)
	}
}

// A user of the plugin reads the plugin's commands, and those of weir that the plugin does not have.
func TestForProgram(t *testing.T) {
	const text = "`weir resize` and `weir top cgroups --node n1` show more, `weir explain node n1` and `weir recording info FILE`, too."
	const want = "`kubectl weir resize` and `kubectl weir top cgroups --node n1` show more, `kubectl weir explain node n1` and `weir recording info FILE`, too."
	if got := ForProgram(text, "kubectl weir"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
