// Package recordingcmd is the command "weir recording", about recorded runs: info.go says
// what is in one, cut.go writes a part of one into another file.
package recordingcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/client/recordingfile"
	"github.com/weir-metrics/weir/humanize"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/recording"
)

// NewCommand returns "recording".
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recording",
		Short: "Look into a recorded run, or cut a part out of it",
		Long: `Look into a recorded run, or cut a part out of it. A run is recorded with
  weir server --sink=recording:FILE
and replayed, to the same numbers, with
  weir server --source='recording:FILE?speed=10'
docs/recording.md describes the file.`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newInfo(), newCut())
	return cmd
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usage(fmt.Errorf("%d files: name one recording", len(args)))
	}
	return nil
}

func newInfo() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "Say what is in a recording",
		Long: `Say what is in a recording: when, of whom, how much, and whether it is whole. It
reads the whole file.`,
		Example: "  weir recording info run.weirrec",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, r, err := recordingfile.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			defer r.Close()
			c, err := readContents(cmd.Context(), r)
			if err != nil {
				return fmt.Errorf("read %s: %w", args[0], err)
			}
			info, err := file.Stat()
			if err != nil {
				return fmt.Errorf("read %s: %w", args[0], err)
			}
			return c.write(cmd.OutOrStdout(), args[0], info.Size())
		},
	}
}

// contents is what there is in a recording.
type contents struct {
	first, last time.Time
	by          string
	runs        int
	sources     map[recordingfile.Source]bool
	nodes       map[metric.NodeName]bool
	pods        map[metric.PodRef]bool
	known       int // pods, by the last facts
	targets     map[string]bool
	rounds      int
	failed      int
	crossChecks int
	facts       int
	samples     int
	containers  int
	broken      error // why it ends before its end
}

func readContents(ctx context.Context, r *recording.Reader) (*contents, error) {
	c := &contents{sources: map[recordingfile.Source]bool{}, nodes: map[metric.NodeName]bool{}, pods: map[metric.PodRef]bool{}, targets: map[string]bool{}}
	for ctx.Err() == nil {
		f, err := r.Next()
		var cut *recording.TruncatedError
		var damaged *recording.DamagedError
		switch {
		case errors.Is(err, io.EOF):
			return c, nil
		case errors.As(err, &cut), errors.As(err, &damaged):
			c.broken = err
			return c, nil
		case err != nil:
			return nil, err
		}
		c.add(&f)
	}
	return nil, ctx.Err()
}

func (c *contents) add(f *recording.Frame) {
	switch f.Kind {
	case recording.Begin:
		// A file of a run that others began holds a part of it.
		if c.by = f.By; f.Fresh || c.runs == 0 {
			c.runs++
		}
	case recording.Facts:
		c.facts++
		c.known = f.Facts.Pods()
	case recording.Scale:
		c.targets[f.Scale.Resource+"."+f.Scale.Group+"/"+string(f.Scale.Namespace)+"/"+f.Scale.Name] = true
	case recording.Round:
		if c.first.IsZero() {
			c.first = f.Now
		}
		c.last = f.Now
		c.rounds++
		c.sources[recordingfile.Source{Name: f.Source, Node: f.Node}] = true
		c.count(f.Batch)
		if f.Batch.Failed() {
			c.failed++
		}
		if f.Batch.CrossCheck != nil {
			c.crossChecks++
			c.count(f.Batch.CrossCheck)
		}
	}
}

func (c *contents) count(b *metric.Batch) {
	c.samples += len(b.Samples)
	if b.Node != "" {
		c.nodes[b.Node] = true
	}
	for i := range b.Samples {
		e := &b.Samples[i].Entity
		switch e.Kind {
		case metric.Container:
			if e.Part == "" {
				c.containers++
			}
			c.pods[e.PodRef()] = true
		case metric.Pod:
			c.pods[e.PodRef()] = true
		case metric.Node:
			c.nodes[e.Node] = true
		}
	}
}

// write tells it to people.
func (c *contents) write(out io.Writer, path string, size int64) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) { fmt.Fprintf(w, what+"\t"+format+"\n", args...) }
	line("file", "%s", path)
	if c.by != "" {
		line("written by", "%s", c.by)
	}
	if c.rounds > 0 {
		line("from", "%s", c.first.UTC().Format(time.RFC3339))
		line("to", "%s (%s)", c.last.UTC().Format(time.RFC3339), humanize.Duration(c.last.Sub(c.first)))
	}
	line("runs", "%d", c.runs)
	line("nodes", "%d, of %d sources", len(c.nodes), len(c.sources))
	line("pods", "%d reported; %d known to the API server at the end", len(c.pods), c.known)
	if len(c.targets) > 0 {
		line("scale targets", "%d", len(c.targets))
	}
	line("rounds", "%d, %d of them failed, %d with a cross-check", c.rounds, c.failed, c.crossChecks)
	line("facts", "%d changes", c.facts)
	line("samples", "%d, %d of them of containers", c.samples, c.containers)
	line("size", "%d bytes%s", size, sizePer(size, c.samples, "sample"))
	whole := "yes"
	if c.broken != nil {
		whole = "no: " + c.broken.Error()
	}
	line("whole", "%s", whole)
	return w.Flush()
}

func sizePer(size int64, n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f a %s", float64(size)/float64(n), what)
}
