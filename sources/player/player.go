package player

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// Options has the file to play and the speed.
type Options struct {
	// Path is the path of the recording.
	Path string
	// Speed is how many recorded seconds are played in one second; default 1. A negative Speed means
	// as fast as possible.
	Speed float64
}

// AsFastAsPossible is a Speed that never waits.
const AsFastAsPossible = -1

// Table has the options of --source=recording.
var Table = options.Table[Options]{
	{Name: "speed", Help: "how many times faster than it was (default 1), or max", Set: func(o *Options, v string) error {
		if v == "max" {
			o.Speed = AsFastAsPossible
			return nil
		}
		speed, err := strconv.ParseFloat(strings.TrimSuffix(v, "x"), 64)
		if err != nil || !(speed > 0 && speed <= 1e6) {
			return fmt.Errorf("it cannot be %q: write how many times faster, such as 10, or max", v)
		}
		o.Speed = speed
		return nil
	}},
}

// ParseOptions parses --source=recording:FILE[?OPTIONS].
func ParseOptions(config string, query url.Values) (Options, error) {
	o := Options{Path: config, Speed: 1}
	if config == "" {
		return o, errors.New("name the file to play: write recording:FILE")
	}
	return o, Table.Parse(&o, query)
}

// Player plays a recording. Several goroutines may call Facts and Now; only one may call the other
// methods.
type Player struct {
	file   *os.File
	reader *recording.Reader
	speed  float64

	known map[metric.SourceKey]bool // the sources that had a round in this run
	gone  []metric.SourceKey        // the sources that were gone since the last round

	// anchor is the recorded time of the first round of the run, and began the time at which it was
	// played. Both are zero before that round.
	anchor, began time.Time

	facts atomic.Pointer[cluster.Facts]
	now   atomic.Pointer[time.Time]
}

// Open opens a recording.
func Open(o Options) (*Player, error) {
	f, err := os.Open(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	r, err := recording.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("play %s: %w", o.Path, err), f.Close())
	}
	o.Speed = cmp.Or(o.Speed, 1)
	return &Player{file: f, reader: r, speed: o.Speed, known: map[metric.SourceKey]bool{}}, nil
}

// Facts returns the facts of the last round; nil if it has none.
func (p *Player) Facts() *cluster.Facts { return p.facts.Load() }

// Now returns the recorded time of the last round; zero before the first round.
func (p *Player) Now() time.Time {
	if now := p.now.Load(); now != nil {
		return *now
	}
	return time.Time{}
}

// Next returns the next round; see manager.Player. When a new run begins, all sources of the run
// before are gone, because the recorded weir started without any state. Sources that are gone after
// the last round are never returned: an older weir recorded all its sources as gone when it ended.
func (p *Player) Next(ctx context.Context, b *metric.Batch) (facts *cluster.Facts, now time.Time, gone []metric.SourceKey, err error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, now, nil, err
		}
		f, err := p.reader.Read(b)
		if err != nil {
			return nil, now, nil, err
		}
		switch f.Kind {
		case recording.Begin:
			if f.Fresh {
				p.gone = append(p.gone, slices.SortedFunc(maps.Keys(p.known), func(a, b metric.SourceKey) int {
					return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Node, b.Node))
				})...)
				clear(p.known)
				p.anchor = time.Time{}
			}
		case recording.Facts:
			p.facts.Store(f.Facts)
		case recording.Gone:
			s := metric.SourceKey{Source: f.Source, Node: f.Node}
			delete(p.known, s)
			p.gone = append(p.gone, s)
		case recording.Round:
			if err := p.await(ctx, f.Now); err != nil {
				return nil, now, nil, err
			}
			p.known[b.Key()] = true
			p.facts.Store(f.Facts)
			p.now.Store(&f.Now)
			gone, p.gone = p.gone, nil
			return f.Facts, f.Now, gone, nil
		}
	}
}

// await waits until it is time to play a round that was recorded at now.
func (p *Player) await(ctx context.Context, now time.Time) error {
	if p.speed < 0 {
		return nil
	}
	if p.anchor.IsZero() {
		p.anchor, p.began = now, time.Now()
		return nil
	}
	due := p.began.Add(time.Duration(float64(now.Sub(p.anchor)) / p.speed))
	select {
	case <-time.After(time.Until(due)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the file.
func (p *Player) Close() error {
	p.reader.Close()
	return p.file.Close()
}
