package app

import (
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/app/stageflag"
	"github.com/weir-metrics/weir/app/version"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/recording"
	"github.com/weir-metrics/weir/sinks/recorder"
	"github.com/weir-metrics/weir/sources/player"
)

// addPlayed makes a recording what is read.
func (p *plan) addPlayed(s stageflag.Stage) error {
	if p.Played != nil {
		return errors.New("one recording is played at a time: join the files of one run with cat")
	}
	o, err := player.ParseOptions(s.Config, s.Options)
	p.Played = &o
	return err
}

// addRecorded adds the file that the run is recorded in.
func (p *plan) addRecorded(s stageflag.Stage) error {
	if p.Recorded != nil {
		return errors.New("a run is recorded in one file: name it once")
	}
	o, err := recorder.ParseOptions(argument(s))
	o.By = "weir " + version.Get().Version
	p.Recorded = &o
	return err
}

// checkRecordings refuses what cannot go together.
func (p *plan) checkRecordings() error {
	switch {
	case p.Played == nil:
		return nil
	case p.Host != nil || len(p.Kubelets) > 0:
		return cli.Hintf(cli.Usage(errors.New("a recording is played alone: its rounds have times of their own")), "Leave the other --source out.")
	case p.Cluster != nil:
		return cli.Hintf(cli.Usage(errors.New("a recording brings what its cluster said")), "Leave --kubeconfig, --master and --in-cluster out.")
	case p.Recorded != nil && p.Recorded.Path == p.Played.Path:
		return cli.Usage(errors.New("a recording cannot be recorded into itself"))
	}
	return nil
}

// held is something open that has no sources of its own.
type held struct{ io.Closer }

// Sources returns none.
func (held) Sources(*cluster.Facts) []manager.Spec { return nil }

// openRecordings opens what is played and what is recorded. Both are closed with
// the sources, when nothing runs any more.
func (d *daemon) openRecordings(p *plan, options *manager.Options) error {
	if p.Played != nil {
		played, err := player.Open(*p.Played)
		if err != nil {
			return err
		}
		d.played, options.Player = played, played
		d.sources = append(d.sources, held{played})
	}
	if p.Recorded != nil {
		sink, err := recorder.Open(*p.Recorded)
		if err != nil {
			return err
		}
		options.Sinks = append(options.Sinks, manager.NamedSink{Name: "recording", Recorder: sink, Queue: 1024})
		d.recorder = sink
		d.sources = append(d.sources, held{sink})
		if err := sink.SetAside(); err != nil {
			d.log.Warn("the recording that was there cannot be gone on with: it is kept as a full file, and a new one begun", zap.Error(err))
		}
		d.log.Info("recording", zap.String("file", p.Recorded.Path))
	}
	return nil
}

// scales returns what records the targets of autoscalers; nil where nothing is
// recorded. That a file cannot be written is said by the rounds that go into it.
func (d *daemon) scales() func(*recording.Target, time.Time) {
	if d.recorder == nil {
		return nil
	}
	return func(t *recording.Target, now time.Time) {
		if err := d.recorder.Scale(t, now); err != nil {
			d.log.Debug("a scale target is not recorded", zap.String("target", string(t.Namespace)+"/"+t.Name), zap.Error(err))
		}
	}
}

// now is the moment that what is served is of: in a recording, its own.
func (d *daemon) now() time.Time {
	if d.played != nil {
		if now := d.played.Now(); !now.IsZero() {
			return now
		}
	}
	return time.Now()
}
