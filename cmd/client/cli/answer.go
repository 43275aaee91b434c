package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Options adapt a command that asks a weir for one answer to its program.
type Options[W any] struct {
	// Connect returns the weir to ask. It is called once, after flags are read.
	Connect func() (W, error)
	// Namespace returns the namespace if nothing else names one, or "" if one must be named. Nil means
	// that one must be named.
	Namespace func() (string, error)
	// Program is the command before the name of this one. Default "weir".
	Program string
}

// AnswerFlags are the flags of a command that asks once and prints the answer.
type AnswerFlags struct {
	Output  string // "text", or a format of documents
	Timeout time.Duration
	// ExitCode makes the command end with ErrMissing if the answer is that something is missing.
	ExitCode bool
}

// Add adds the flags --output and --timeout to f, which are flags of cmd. A command with --exit-code adds
// that itself. usage describes the timeout.
func (a *AnswerFlags) Add(cmd *cobra.Command, f *pflag.FlagSet, timeout time.Duration, usage string) {
	f.StringVarP(&a.Output, "output", "o", "text", "text, json, yaml or jsonpath=TEMPLATE")
	f.DurationVar(&a.Timeout, "timeout", timeout, usage)
	CompleteFlag(cmd, "output", Fixed("text", "json", "yaml", "jsonpath="))
}

// Check returns an error for flags that make no sense. AskOnce calls it.
func (a *AnswerFlags) Check() error {
	if err := Output(a.Output, "text"); err != nil {
		return err
	}
	if a.Timeout <= 0 {
		return Usage(fmt.Errorf("--timeout cannot be %v", a.Timeout))
	}
	return nil
}

// AskOnce sends one request to what connect returns, and writes the answer as text or as a document. missing
// reports whether the answer is that something is missing; nil if no answer is.
func AskOnce[W, T any](
	cmd *cobra.Command, flags *AnswerFlags, connect func() (W, error), ask func(context.Context, W) (T, error),
	text func(io.Writer, T) error, document func(T) any, missing func(T) bool,
) error {
	if err := flags.Check(); err != nil {
		return err
	}
	w, err := connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), flags.Timeout)
	defer cancel()
	answer, err := ask(ctx, w)
	switch {
	case err != nil:
		return err
	case flags.Output != "text":
		err = WriteDocument(cmd.OutOrStdout(), flags.Output, document(answer))
	default:
		err = text(cmd.OutOrStdout(), answer)
	}
	if err == nil && flags.ExitCode && missing != nil && missing(answer) {
		return ErrMissing
	}
	return err
}
