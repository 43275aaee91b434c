package exact

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/processors"
)

func pipeline() []processors.Step { return processors.New(processors.Options{}).Steps() }

// A layout saves looking entities up, and changes nothing that any processor says.
func TestALayoutChangesNothing(t *testing.T) {
	for seed := range *seeds / 60 {
		p := newPlay(t, seed)
		for _, s := range p.sources {
			laid, bare := pipeline(), pipeline()
			layout := &metric.Layout{}
			a := &metric.Batch{}
			for s.round < p.rounds && !t.Failed() {
				facts, now := p.read(s)
				b := &s.batch
				a.CopyFrom(b)
				a.Layout, b.Layout = layoutOf(b, layout), nil
				if a.Layout != nil {
					layout = a.Layout
				}
				reported := len(b.Samples)
				for i := range laid {
					laid[i].Process(facts, a, now)
					bare[i].Process(facts, b, now)
					reported = min(reported, len(b.Samples)) // a step may take some out
					if got, want := describeBatch(a, reported), describeBatch(b, reported); !slices.Equal(got, want) {
						t.Fatalf("round %d, %T with a layout:\n%s\n(%v)", s.round, laid[i], difference(got, want), p.schedule)
					}
				}
			}
		}
	}
}

// read fills s.batch with the source's next round.
func (p *play) read(s *source) (*cluster.Facts, time.Time) {
	now := s.next
	if i, ok := p.changes[s.round]; ok {
		s.batch.Interval = i
	}
	s.round++
	s.next = now.Add(s.batch.Interval)
	b := &s.batch
	b.Reset()
	b.Began, b.Ended = now, now
	if s.round > 1 && p.r.Float64() < p.missed {
		b.Err = &metric.ReadError{Reason: metric.NodeTimeout, Err: errMissed}
		return p.factsAt(now), now
	}
	made := now
	if p.r.Float64() < p.late {
		made = now.Add(-time.Duration(p.r.Int64N(int64(20 * time.Second))))
	}
	p.parse(s.parser, s, s.endpoint, made, now, b)
	if p.seed%3 == 0 {
		b.NodeTime = 0 // it does not tell
	}
	return p.factsAt(now), now
}

// layoutOf returns the layout of b: last, if that is still it, and none for a read
// that gave nothing.
func layoutOf(b *metric.Batch, last *metric.Layout) *metric.Layout {
	if len(b.Samples) == 0 {
		return nil
	}
	l := metric.LayoutOf(b.Samples)
	if slices.Equal(l.Entities, last.Entities) {
		return last
	}
	return l
}

// describeBatch returns all that b says: of what was reported in that order, of what was added
// in any.
func describeBatch(b *metric.Batch, reported int) []string {
	var lines []string
	for i := range b.Samples {
		s := b.Samples[i]
		values := maps.Collect(s.Values.All())
		s.Values = metric.Values{}
		lines = append(lines, fmt.Sprintf("%+v %v", s, values))
	}
	slices.Sort(lines[reported:])
	first := len(lines)
	for i := range b.Verdicts {
		lines = append(lines, fmt.Sprintf("%+v", b.Verdicts[i]))
	}
	slices.Sort(lines[first:])
	return lines
}

// difference returns the first lines in which got is not want.
func difference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return "got  " + g + "\nwant " + w
		}
	}
	return "no difference"
}
