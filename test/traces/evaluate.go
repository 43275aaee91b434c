package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/replay"
)

// page is the page with places for what is measured.
//
//go:embed resize-evaluation.txt
var page string

// evaluate returns the page.
func evaluate(ctx context.Context, dir string) (string, error) {
	var traces, tables, damped strings.Builder
	for i := range sources {
		s := &sources[i]
		entities, err := s.read(dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&traces, "| %s | github.com/%s at `%s` | %s | %s | %s |\n", s.name, s.repository, s.head(ctx, dir), s.licence, s.about, s.cannot)
		o := replay.Defaults()
		o.VPAPeaks, o.Warmup = s.vpaPeaks, s.warmup
		if err := s.score(ctx, &tables, entities, o); err != nil {
			return "", err
		}
		o.LeastShrink = 0.15
		if err := s.score(ctx, &damped, entities, o); err != nil {
			return "", err
		}
	}
	text := strings.NewReplacer("{{traces}}\n", traces.String(), "{{tables}}\n", strings.TrimPrefix(tables.String(), "\n"), "{{damped}}\n", strings.TrimPrefix(damped.String(), "\n"),
		"{{seed}}", fmt.Sprint(replay.Defaults().Seed), "{{resamples}}", humanize.Number(replay.Defaults().Resamples)).Replace(page)
	return text, nil
}

// head returns the first digits of the commit that is checked out.
func (s *source) head(ctx context.Context, dir string) string {
	folder := filepath.Join(dir, s.folder())
	if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
		if out, err := exec.CommandContext(ctx, "git", "-C", folder, "rev-parse", "--short=12", "HEAD").Output(); err == nil {
			return strings.TrimSpace(string(out))
		}
	}
	return "unknown commit"
}

// score adds the tables of a trace, one for each resource that it has.
func (s *source) score(ctx context.Context, w *strings.Builder, entities []trace.Entity, o replay.Options) error {
	result, err := replay.Run(ctx, entities, o)
	if err != nil {
		return fmt.Errorf("replay %s: %w", s.name, err)
	}
	for i := range result.Rows {
		row := &result.Rows[i]
		harm, unit := "–", "cores"
		if row.Resource == resize.Memory {
			unit = "GiB"
		}
		if i == 0 || result.Rows[i-1].Resource != row.Resource {
			fmt.Fprintf(w, "\n**%s, %s**: %s, %.4g container-days\n\n", s.name, resourceName(row.Resource), humanize.Count(row.Containers, "container"), row.Days)
			fmt.Fprintf(w, "| | slack | by day | p50 | p95 | overrun | of time | OOM kills/day | killed | changes/day | saved (%s) |\n|---|---|---|---|---|---|---|---|---|---|---|\n", unit)
		}
		killed := "–"
		if row.Kills != nil {
			harm, killed = bracketed(*row.Kills, row.KillsRange, rate), humanize.Percent(*row.KilledShare)
		}
		saved := row.Saved
		if row.Resource == resize.Memory {
			saved /= gibibyte
		}
		fmt.Fprintln(w, "|", strings.Join([]string{
			row.Estimator, bracketed(row.Slack, row.SlackRange, humanize.Percent), humanize.Percent(row.SlackByDay), humanize.Percent(row.SlackP50), humanize.Percent(row.SlackP95),
			bracketed(row.Overrun, row.OverrunRange, humanize.Percent), humanize.Percent(row.OverrunTime), harm, killed, bracketed(row.Changes, row.ChangesRange, rate),
			fmt.Sprintf("%s (%s)", humanize.Decimal(saved, 2), humanize.Percent(row.SavedShare)),
		}, " | "), "|")
	}
	return nil
}

func resourceName(r resize.Resource) string {
	return cmp.Or(map[resize.Resource]string{resize.CPU: "CPU"}[r], string(r))
}

func rate(v float64) string { return humanize.Decimal(v, 3) }

func bracketed(v float64, r *trace.Range, format func(float64) string) string {
	if r == nil {
		return format(v)
	}
	return fmt.Sprintf("%s (%s–%s)", format(v), format(r.Low), format(r.High))
}
