// Package recordingcmd is the command "weir recording", about recorded runs, and reads them for other
// commands. info.go describes the content of a recording, cut.go writes a part of one into another
// file. file.go opens a recording and parses times in flags, play.go plays one into a memory sink.
package recordingcmd

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// NewCommand returns "recording".
func NewCommand() *cobra.Command {
	return cli.Group("recording", "Look into a recorded run, or cut a part out of it", `Look into a recorded run, or cut a part out of it. A run is recorded with
  weir server --sink=recording:FILE
and replayed, to the same numbers, with
  weir server --source='recording:FILE?speed=10'
docs/recording.md describes the file.`, newInfo(), newCut())
}

func newInfo() *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "Describe a recording",
		Long: `Describe a recording: the time, the sources, how much, and whether it is whole.
It reads the whole file.`,
		Example: "  weir recording info run.weirrec",
		Args:    cli.OneFile("recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := openFile(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			line := cli.StartProgress(cmd.ErrOrStderr())
			defer line.Stop()
			c, err := readContents(file.frames(cmd.Context(), line))
			line.Stop()
			if err != nil {
				return fmt.Errorf("read %s: %w", args[0], err)
			}
			info, err := file.disk.Stat()
			if err != nil {
				return fmt.Errorf("read %s: %w", args[0], err)
			}
			return c.write(cmd.OutOrStdout(), args[0], info.Size())
		},
	}
}

// contents describes the content of a recording.
type contents struct {
	first, last                       time.Time
	writer                            string
	sources                           sets.Set[metric.SourceKey]
	nodes                             sets.Set[metric.NodeName]
	pods                              sets.Set[metric.PodRef]
	targets                           sets.Set[scaleTarget]
	known                             int // pods in the last facts
	runs, facts                       int
	rounds, failedRounds, crossChecks int
	samples, containers               int
	broken                            error // the error that ends the file
	gaps                              []gap
}

// gap is a span of time without records.
type gap struct{ from, to time.Time }

func (g gap) String() string {
	return fmt.Sprintf("%s (%s)", g.from.UTC().Format(time.RFC3339), humanize.Duration(g.to.Sub(g.from)))
}

// readContents reads the frames of a recording.
func readContents(frames iter.Seq2[recording.Frame, error]) (*contents, error) {
	c := &contents{
		sources: sets.Set[metric.SourceKey]{}, nodes: sets.Set[metric.NodeName]{},
		pods: sets.Set[metric.PodRef]{}, targets: sets.Set[scaleTarget]{},
	}
	for f, err := range frames {
		switch {
		case err == nil:
			c.add(&f)
		case endsEarly(err):
			c.broken = err
		default:
			return nil, err
		}
	}
	return c, nil
}

func (c *contents) add(f *recording.Frame) {
	switch f.Kind {
	case recording.Begin:
		// If an earlier file has the start of the run, this file has only a part of it.
		if c.writer = f.By; f.Fresh || c.runs == 0 {
			c.runs++
		}
		if !f.Missing.IsZero() {
			c.gaps = append(c.gaps, gap{f.Missing, f.Now})
		}
	case recording.Facts:
		c.facts++
		c.known = f.Facts.Pods()
	case recording.Scale:
		c.targets.Insert(scaleTargetOf(f.Scale))
	case recording.Round:
		if c.first.IsZero() {
			c.first = f.Now
		}
		c.last = f.Now
		c.rounds++
		c.sources.Insert(metric.SourceKey{Source: f.Source, Node: f.Node})
		c.count(f.Batch)
		if f.Batch.Failed() {
			c.failedRounds++
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
		c.nodes.Insert(b.Node)
	}
	for i := range b.Samples {
		e := &b.Samples[i].Entity
		if e.Kind == metric.Container && e.Part == "" {
			c.containers++
		}
		switch e.Kind {
		case metric.Container, metric.Pod:
			c.pods.Insert(e.PodRef())
		case metric.Node:
			c.nodes.Insert(e.Node)
		}
	}
}

// write writes a table for people.
func (c *contents) write(out io.Writer, path string, size int64) error {
	var rows [][]string
	line := func(what, format string, args ...any) {
		rows = append(rows, []string{what, fmt.Sprintf(format, args...)})
	}
	line("file", "%s", path)
	if c.writer != "" {
		line("written by", "%s", c.writer)
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
	line("rounds", "%d, %d of them failed, %d with a cross-check", c.rounds, c.failedRounds, c.crossChecks)
	line("facts", "%d changes", c.facts)
	line("samples", "%d, %d of them of containers", c.samples, c.containers)
	if c.samples > 0 {
		line("size", "%d bytes, %.1f a sample", size, float64(size)/float64(c.samples))
	} else {
		line("size", "%d bytes", size)
	}
	line("whole", "%s", c.completeness())
	var p humanize.Page
	p.Table(rows)
	return p.Print(out)
}

// completeness describes what is missing of the recording: "yes" for nothing.
func (c *contents) completeness() string {
	var missing []string
	if c.broken != nil {
		missing = append(missing, c.broken.Error())
	}
	if n := len(c.gaps); n > 0 {
		from := make([]string, n)
		for i := range c.gaps {
			from[i] = c.gaps[i].String()
		}
		missing = append(missing, fmt.Sprintf("%s without records: from %s", humanize.Count(n, "gap"), humanize.List(from, 5)))
	}
	if len(missing) == 0 {
		return "yes"
	}
	return "no: " + strings.Join(missing, "; ")
}
