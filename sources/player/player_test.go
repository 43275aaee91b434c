package player_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/cluster"
	format "github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/player"
)

var began = time.Date(2026, 11, 2, 15, 0, 0, 0, time.UTC)

// tape writes a file with two runs: one of three nodes, where one node disappears, and one of a
// single node, which is gone at the end.
func tape(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var w *format.Writer
	run := func(at time.Time) {
		if w, err = format.NewWriter(f, format.Options{Begin: at}); err != nil {
			t.Fatal(err)
		}
	}
	facts := (*cluster.Facts)(nil).With(cluster.FactsChange{Synced: true, At: began})
	round := func(node metric.NodeName, at time.Time) {
		if err := w.Round(&metric.Batch{Source: "s", Node: node, Began: at, Ended: at}, facts, at); err != nil {
			t.Fatal(err)
		}
	}
	run(began)
	round("a", began)
	round("b", began.Add(5*time.Second))
	round("c", began.Add(5*time.Second))
	if err := w.Gone("s", "a"); err != nil {
		t.Fatal(err)
	}
	round("b", began.Add(20*time.Second))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run(began.Add(24 * time.Hour))
	round("b", began.Add(24*time.Hour))
	round("b", began.Add(24*time.Hour+10*time.Second))
	if err := w.Gone("s", "b"); err != nil { // as an older weir did when it ended
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// played returns what a player plays, and when.
func played(t *testing.T, o player.Options) string {
	t.Helper()
	p, err := player.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var said strings.Builder
	start := time.Now()
	for {
		var b metric.Batch
		facts, now, gone, err := p.Next(t.Context(), &b)
		switch {
		case errors.Is(err, io.EOF):
			return said.String()
		case err != nil:
			t.Fatal(err)
		}
		for _, source := range gone {
			fmt.Fprintf(&said, "%v: %s is gone\n", time.Since(start), source.Node)
		}
		fmt.Fprintf(&said, "%v: %s at %v\n", time.Since(start), b.Node, now.Sub(began))
		if facts == nil || !facts.Synced || p.Facts() != facts || !p.Now().Equal(now) {
			t.Errorf("at %v: facts %v, and the player says %v at %v", now, facts, p.Facts(), p.Now())
		}
	}
}

// TestPace checks that a recording is played at its speed, without the time between two runs.
func TestPace(t *testing.T) {
	path := tape(t)
	for speed, want := range map[float64]string{
		1: `0s: a at 0s
5s: b at 5s
5s: c at 5s
20s: a is gone
20s: b at 20s
20s: b is gone
20s: c is gone
20s: b at 24h0m0s
30s: b at 24h0m10s
`,
		2: `0s: a at 0s
2.5s: b at 5s
2.5s: c at 5s
10s: a is gone
10s: b at 20s
10s: b is gone
10s: c is gone
10s: b at 24h0m0s
15s: b at 24h0m10s
`,
		player.AsFastAsPossible: `0s: a at 0s
0s: b at 5s
0s: c at 5s
0s: a is gone
0s: b at 20s
0s: b is gone
0s: c is gone
0s: b at 24h0m0s
0s: b at 24h0m10s
`,
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := played(t, player.Options{Path: path, Speed: speed}); got != want {
				t.Errorf("at speed %v:\n%s\nwant:\n%s", speed, got, want)
			}
		})
	}
}

func TestAPlayerStopsWithItsContext(t *testing.T) {
	path := tape(t)
	synctest.Test(t, func(t *testing.T) {
		p, err := player.Open(player.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 {
			_, _, _, err = p.Next(ctx, new(metric.Batch))
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that its time is over", err)
		}
	})
}

func TestOptions(t *testing.T) {
	for speed, want := range map[string]float64{"": 1, "10": 10, "0.5": 0.5, "60x": 60, "max": player.AsFastAsPossible} {
		options := url.Values{}
		if speed != "" {
			options.Set("speed", speed)
		}
		got, err := player.ParseOptions("run", options)
		if err != nil || got != (player.Options{Path: "run", Speed: want}) {
			t.Errorf("speed %q: got %v (%v), want %v", speed, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"speed=0":    `option speed: it cannot be "0": write how many times faster, such as 10, or max`,
		"speed=fast": `option speed: it cannot be "fast": write how many times faster, such as 10, or max`,
		"speed=NaN":  `option speed: it cannot be "NaN": write how many times faster, such as 10, or max`,
		"pace=1":     `no option is called "pace": there are speed`,
	} {
		options, err := url.ParseQuery(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := player.ParseOptions("run", options); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
	if _, err := player.ParseOptions("", nil); err == nil {
		t.Error("no file: no error")
	}
}
