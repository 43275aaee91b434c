package recordingcmd

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

func newCut() *cobra.Command {
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
		Args: cli.OneFile("recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return cli.Usage(errors.New("the part needs a file of its own: add -o FILE"))
			}
			begin, err := ParseTime("--from", from)
			if err != nil {
				return err
			}
			end, err := ParseTime("--to", to)
			if err != nil {
				return err
			}
			file, err := openFile(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			out, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, os.ErrExist) {
				return cli.Hintf(fmt.Errorf("write the part: %w", err), "Name a file that is not there yet.")
			}
			if err != nil {
				return fmt.Errorf("write the part: %w", err)
			}
			line := cli.StartProgress(cmd.ErrOrStderr())
			defer line.Stop()
			rounds, err := cut(file.frames(cmd.Context(), line), out, begin, end)
			line.Stop()
			if endsEarly(err) { // the rounds before that are in the new file
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", args[0], err)
				err = nil
			}
			if err = errors.Join(err, out.Close()); err == nil && rounds == 0 {
				err = errors.New("no round in that time: `weir recording info` shows the time of the recording")
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

// cut writes the frames of a period to out and returns how many rounds it wrote.
func cut(frames iter.Seq2[recording.Frame, error], out io.Writer, from, to Time) (rounds int, err error) {
	p := part{from: from, to: to, targets: map[scaleTarget]*recording.ScaleTarget{}, out: out}
	defer func() { err = errors.Join(err, p.close()) }()
	for f, err := range frames {
		switch {
		case err != nil:
			return rounds, err
		case p.isAfter(&f):
			return rounds, nil
		case p.isBefore(&f):
			continue
		}
		if err := p.write(&f); err != nil {
			return rounds, err
		}
		if f.Kind == recording.Round {
			rounds++
		}
	}
	return rounds, nil
}

// part is the part of a recording in a period, as it is written. It begins a recording with the first
// frame, and another one after each restart of the recording weir.
type part struct {
	from, to Time
	first    time.Time // of the whole recording
	// targets are the scale targets as they were before the period. The part begins with them.
	targets map[scaleTarget]*recording.ScaleTarget

	out       io.Writer
	w         *recording.Writer // nil before the first frame
	restarted bool
	writer    string // the version of weir that recorded the next frames
}

// isAfter reports whether f is after the period. A Begin frame has no time of its own.
func (p *part) isAfter(f *recording.Frame) bool {
	if p.first.IsZero() {
		p.first = f.Now
	}
	return p.to.Given && f.Kind != recording.Begin && !f.Now.Before(p.to.Since(p.first))
}

// isBefore reports whether f is before the period. It stores the state of scale targets.
func (p *part) isBefore(f *recording.Frame) bool {
	if f.Kind == recording.Begin || !p.from.Given || !f.Now.Before(p.from.Since(p.first)) {
		return false
	}
	if f.Kind == recording.Scale {
		p.targets[scaleTargetOf(f.Scale)] = f.Scale
	}
	return true
}

// write writes f, after what begins a recording if f is its first frame.
func (p *part) write(f *recording.Frame) error {
	if f.Kind == recording.Begin {
		p.restarted, p.writer = p.restarted || f.Fresh && p.w != nil, f.By
		if !f.Missing.IsZero() && p.w != nil {
			p.w.Skip(f.Missing)
		}
		return nil
	}
	if p.w == nil || p.restarted {
		if err := p.begin(f.Now); err != nil {
			return err
		}
	}
	return copyFrame(p.w, f)
}

// begin begins a recording. The first one gets the targets.
func (p *part) begin(now time.Time) error {
	if err := p.close(); err != nil {
		return err
	}
	w, err := recording.NewWriter(p.out, recording.Options{Begin: now, By: p.writer})
	if err != nil {
		return err
	}
	p.w, p.restarted = w, false
	for _, t := range p.targets {
		if err := w.Scale(t, now); err != nil {
			return err
		}
	}
	clear(p.targets)
	return nil
}

// close ends the recording that was begun last, if there is one.
func (p *part) close() error {
	if p.w == nil {
		return nil
	}
	w := p.w
	p.w = nil
	return w.Close()
}

type scaleTarget struct {
	group, resource string
	namespace       metric.Namespace
	name            string
}

func scaleTargetOf(t *recording.ScaleTarget) scaleTarget {
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
