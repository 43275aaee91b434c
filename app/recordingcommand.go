package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/recording"
)

// newRecording returns the commands about recorded runs.
func newRecording() *cobra.Command {
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
	cmd.AddCommand(newRecordingInfo(), newRecordingCut())
	return cmd
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usage(fmt.Errorf("%d files: name one recording", len(args)))
	}
	return nil
}

func newRecordingInfo() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "Say what is in a recording",
		Long: `Say what is in a recording: when, of whom, how much, and whether it is whole. It
reads the whole file.`,
		Example: "  weir recording info run.weirrec",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, r, err := openRecording(args[0])
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

// openRecording opens a recording to be read.
func openRecording(path string) (*os.File, *recording.Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open the recording: %w", err)
	}
	r, err := recording.NewReader(bufio.NewReaderSize(file, 1<<20))
	if err != nil {
		err = fmt.Errorf("read %s: %w", path, err)
		var none *recording.NoRecordingError
		if errors.As(err, &none) {
			err = cli.Hintf(err, "A recording is what weir server --sink=recording:FILE writes.")
		}
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, r, nil
}

// contents is what there is in a recording.
type contents struct {
	first, last time.Time
	by          string
	runs        int
	sources     map[recordedSource]bool
	nodes       map[metric.NodeName]bool
	pods        map[metric.PodRef]bool
	known       int // pods, by the last facts
	targets     map[string]bool
	rounds      int
	failed      int
	witnesses   int
	facts       int
	samples     int
	containers  int
	broken      error // why it ends before its end
}

func readContents(ctx context.Context, r *recording.Reader) (*contents, error) {
	c := &contents{sources: map[recordedSource]bool{}, nodes: map[metric.NodeName]bool{}, pods: map[metric.PodRef]bool{}, targets: map[string]bool{}}
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
		c.sources[recordedSource{f.Source, f.Node}] = true
		c.count(f.Batch)
		if f.Batch.Failed() {
			c.failed++
		}
		if f.Batch.CrossCheck != nil {
			c.witnesses++
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
		line("to", "%s (%v)", c.last.UTC().Format(time.RFC3339), c.last.Sub(c.first).Round(time.Second))
	}
	line("runs", "%d", c.runs)
	line("nodes", "%d, of %d sources", len(c.nodes), len(c.sources))
	line("pods", "%d reported; %d known to the API server at the end", len(c.pods), c.known)
	if len(c.targets) > 0 {
		line("scale targets", "%d", len(c.targets))
	}
	line("rounds", "%d, %d of them failed, %d with a witness", c.rounds, c.failed, c.witnesses)
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

func newRecordingCut() *cobra.Command {
	var from, to, output string
	cmd := &cobra.Command{
		Use:   "cut FILE",
		Short: "Write a part of a recording into another file",
		Long: `Write a part of a recording into another file. A replay of the part begins with
nothing: its first rounds have no rates yet. Begin a few minutes before what is of
interest.

A time is one of day, 2026-11-02T15:04:05Z, or a duration from the beginning.`,
		Example: `  weir recording cut run.weirrec --from=2h --to=3h -o part.weirrec
  weir recording cut run.weirrec --from=2026-11-02T15:00:00Z -o part.weirrec`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return cli.Usage(errors.New("the part needs a file of its own: give -o FILE"))
			}
			begin, err := parseRecordingTime("--from", from)
			if err != nil {
				return err
			}
			end, err := parseRecordingTime("--to", to)
			if err != nil {
				return err
			}
			file, r, err := openRecording(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			defer r.Close()
			out, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, os.ErrExist) {
				return cli.Hintf(fmt.Errorf("write the part: %w", err), "Name a file that is not there yet.")
			}
			if err != nil {
				return fmt.Errorf("write the part: %w", err)
			}
			rounds, err := cut(cmd.Context(), r, out, begin, end)
			// What is whole can be saved so.
			var truncated *recording.TruncatedError
			var damaged *recording.DamagedError
			if errors.As(err, &truncated) || errors.As(err, &damaged) {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", args[0], err)
				err = nil
			}
			if err = errors.Join(err, out.Close()); err == nil && rounds == 0 {
				err = errors.New("there is no round in that time: weir recording info says when there are some")
			}
			if err != nil {
				return errors.Join(fmt.Errorf("cut %s: %w", args[0], err), os.Remove(output))
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d rounds written to %s\n", rounds, output)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`TIME` of the first round of the part; the beginning if empty")
	cmd.Flags().StringVar(&to, "to", "", "`TIME` after its last round; the end if empty")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write, which must not be there")
	return cmd
}

// recordingTime is a time of day, or so long after the beginning.
type recordingTime struct {
	at    time.Time
	after time.Duration
	given bool
}

func parseRecordingTime(flag, text string) (recordingTime, error) {
	if text == "" {
		return recordingTime{}, nil
	}
	if d, ok := wholeDays(text); ok {
		return recordingTime{after: d, given: true}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return recordingTime{after: d, given: true}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return recordingTime{}, cli.Usage(fmt.Errorf("%s cannot be %q: write 2026-11-02T15:04:05Z, or a duration from the beginning such as 90m", flag, text))
	}
	return recordingTime{at: t, given: true}, nil
}

// since returns the moment in a recording that begins at first.
func (m recordingTime) since(first time.Time) time.Time {
	if m.at.IsZero() {
		return first.Add(m.after)
	}
	return m.at
}

// cut writes the rounds of a time to out, and what else happened then. It
// returns how many rounds there were.
func cut(ctx context.Context, r *recording.Reader, out io.Writer, from, to recordingTime) (rounds int, err error) {
	var (
		w     *recording.Writer
		first time.Time
		fresh bool
		by    string
	)
	defer func() {
		if w != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	targets := map[scaleTarget]*recording.Target{} // as they were before the part begins
	for {
		if err := ctx.Err(); err != nil {
			return rounds, err
		}
		f, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return rounds, nil
		case err != nil:
			return rounds, err
		}
		if first.IsZero() {
			first = f.Now
		}
		if to.given && f.Kind != recording.Begin && !f.Now.Before(to.since(first)) {
			return rounds, nil
		}
		if f.Kind == recording.Begin {
			fresh, by = fresh || f.Fresh && w != nil, f.By
			continue
		}
		if from.given && f.Now.Before(from.since(first)) {
			if f.Kind == recording.Scale {
				targets[scaleTargetOf(f.Scale)] = f.Scale
			}
			continue
		}
		if w == nil || fresh {
			if w != nil {
				if err := w.Close(); err != nil {
					return rounds, err
				}
			}
			if w, err = recording.NewWriter(out, recording.Options{Begin: f.Now, By: by}); err != nil {
				return rounds, err
			}
			fresh = false
			for _, t := range targets {
				if err := w.Scale(t, f.Now); err != nil {
					return rounds, err
				}
			}
			clear(targets)
		}
		if err := copyFrame(w, &f); err != nil {
			return rounds, err
		}
		if f.Kind == recording.Round {
			rounds++
		}
	}
}

type scaleTarget struct {
	group, resource string
	namespace       metric.Namespace
	name            string
}

func scaleTargetOf(t *recording.Target) scaleTarget {
	return scaleTarget{t.Group, t.Resource, t.Namespace, t.Name}
}

func copyFrame(w *recording.Writer, f *recording.Frame) error {
	switch f.Kind {
	case recording.Facts:
		return w.Facts(f.Facts, f.Now)
	case recording.Round:
		return w.Round(f.Batch, f.Facts, f.Now)
	case recording.Gone:
		return w.Gone(f.Source, f.Node)
	case recording.Scale:
		return w.Scale(f.Scale, f.Now)
	}
	return nil
}
