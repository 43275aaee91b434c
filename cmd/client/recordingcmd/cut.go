package recordingcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/client/progress"
	"github.com/weir-metrics/weir/cmd/client/recordingfile"
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
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return cli.Usage(errors.New("the part needs a file of its own: give -o FILE"))
			}
			begin, err := recordingfile.ParseTime("--from", from)
			if err != nil {
				return err
			}
			end, err := recordingfile.ParseTime("--to", to)
			if err != nil {
				return err
			}
			file, r, err := recordingfile.Open(args[0])
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
			line := progress.Start(cmd.ErrOrStderr())
			defer line.Stop()
			rounds, err := cut(cmd.Context(), r, recordingfile.ShowRead(line, file, r), out, begin, end)
			line.Stop()
			// The rounds before a truncation or damage are in the new file.
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

// cut writes the frames of a period to out and returns how many rounds it wrote. It calls showRead
// before each frame.
func cut(ctx context.Context, r *recording.Reader, showRead func(), out io.Writer, from, to recordingfile.Time) (rounds int, err error) {
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
	targets := map[scaleTarget]*recording.ScaleTarget{} // their last state before the part begins
	for {
		if err := ctx.Err(); err != nil {
			return rounds, err
		}
		showRead()
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
		if to.Given && f.Kind != recording.Begin && !f.Now.Before(to.Since(first)) {
			return rounds, nil
		}
		if f.Kind == recording.Begin {
			fresh, by = fresh || f.Fresh && w != nil, f.By
			if !f.Missing.IsZero() && w != nil {
				w.Skip(f.Missing)
			}
			continue
		}
		if from.Given && f.Now.Before(from.Since(first)) {
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
