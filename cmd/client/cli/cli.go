// Package cli is the common part of weir's commands: how they reach a weir, what they print, and how
// they end. After an error the user sees one line that describes it and, if there is one, a line
// with the next step.
//
// Files: cli.go runs a command and reports its error (internal/usererror has the errors that other rooms
// return, too), flags.go parses and completes flags. location.go finds the weir and the cluster
// that a command asks, and weir.go is the client of all APIs of a weir; direct.go has the advice for
// a weir at a URL, cluster.go for the weir of a cluster, and completion.go completes names in a shell.
// document.go writes JSON and YAML, jsonpath.go templates. terminal.go finds out what an output can
// show, answer.go asks once and prints the answer, progress.go shows what a command is doing while it takes long.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/usererror"
)

// Hint is an error with the next step for its reader.
type Hint = usererror.Hint

// Hintf wraps err with the next step.
func Hintf(err error, format string, args ...any) error {
	return usererror.Hintf(err, format, args...)
}

// ErrMissing ends a command that reports by its exit status, and that has printed that something is
// missing.
var ErrMissing = errors.New("something is missing")

// ErrUndone ends a command that has undone what it did.
var ErrUndone = errors.New("the change was undone")

// Main runs root with args and returns the exit status: 0, 2 after ErrMissing, 3 after ErrUndone, or 1 after
// another error. It prints all but the first. An interrupt is not an error.
func Main(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(flagError)
	var unknown error // the error of an unknown word before --help
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); len(words) > 0 && cmd.HasSubCommands() {
			unknown = cmd.ValidateArgs(words)
		}
		if unknown == nil {
			help(cmd, args)
		}
	})
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = unknown
	}
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return 0
	}
	if errors.Is(err, ErrMissing) {
		return 2
	}
	// Both texts may come from a server, so they are made printable.
	fmt.Fprintf(stderr, "error: %s\n", humanize.PrintableLines(err.Error()))
	var hint *Hint
	switch {
	case errors.As(err, &hint):
		fmt.Fprintln(stderr, humanize.PrintableLines(hint.Try))
	case isUsage(err):
		fmt.Fprintf(stderr, "Run %q to see what there is.\n", cmd.CommandPath()+" --help")
	}
	if errors.Is(err, ErrUndone) {
		return 3
	}
	return 1
}

func isUsage(err error) bool {
	return usererror.IsUsage(err) || strings.HasPrefix(err.Error(), "unknown command")
}

// Usage marks err as an error in the way the command was called. Main then refers to the help.
func Usage(err error) error { return usererror.Usage(err) }

// forms are how the values of flags are written, by pflag's types.
var forms = map[string]string{
	"duration": "write a duration with its unit, such as 30s, 5m or 1h30m",
	"int":      "write a whole number", "int32": "write a whole number", "int64": "write a whole number",
	"uint64":  "write a whole number of 0 or more",
	"float64": "write a number, such as 0.5",
	"bool":    "write true or false",
}

// invalidValue returns the error for a value that a flag does not take. A URL is without its secrets.
func invalidValue(invalid *pflag.InvalidValueError) error {
	value, flag, reason := invalid.GetValue(), invalid.GetFlag(), errors.Unwrap(invalid)
	if strings.Contains(value, "://") {
		value = humanize.URL(value)
	}
	if form := forms[flag.Value.Type()]; form != "" {
		reason = errors.New(form)
	}
	return fmt.Errorf("invalid argument %q for \"--%s\" flag: %w", value, flag.Name, reason)
}

// flagError adds the most similar flag to the error about an unknown one, and the form of its values to
// the error about a value.
func flagError(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = invalidValue(invalid)
		}
		return Usage(err)
	}
	if near, ok := usererror.Closest(name, flags(cmd)); ok {
		return Usage(fmt.Errorf("%w: did you mean --%s?", err, near))
	}
	return Usage(err)
}

// OneOf returns an error that names the most similar value, unless value is in known. An empty
// string may be in known, but the error does not suggest it.
func OneOf(what, value string, known ...string) error {
	return usererror.OneOf(what, value, known...)
}

// Closest returns the known name that is most similar to name, if it is similar enough.
func Closest(name string, known []string) (string, bool) { return usererror.Closest(name, known) }

// Group returns a command that has only subcommands.
func Group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// Subcommand is the Args function of a command that has only subcommands. It returns an error for
// any other word, with the most similar name.
func Subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return OneOf("the command after "+cmd.CommandPath(), args[0], names...)
}

// NewHelp returns the command help. It refuses what is not a command or a topic.
func NewHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about a command or a topic",
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err == nil && cmd.HasSubCommands() {
				err = Subcommand(cmd, rest)
			}
			if err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// NoArgs is the Args function of a command without arguments. Its error has a hint for the user.
func NoArgs(hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usage(fmt.Errorf("unexpected argument %q; %s", args[0], hint))
		}
		return nil
	}
}

// OneFile is the Args function of a command that reads one file. kind is what the file has to be.
func OneFile(kind string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usage(fmt.Errorf("%d files: name one %s", len(args), kind))
		}
		return nil
	}
}

// ForProgram changes the commands in a text from weir to those of program, because a user of
// kubectl-weir may not have weir.
func ForProgram(text, program string) string {
	for _, command := range []string{"top", "explain", "autoscaler", "resize", "doctor"} {
		text = strings.ReplaceAll(text, "`weir "+command, "`"+program+" "+command)
	}
	return text
}
