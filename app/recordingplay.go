package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/recording"
	"github.com/weir-metrics/weir/sinks/memory"
)

// playWith plays the recording at path to a memory of o, and calls each after every
// frame with what weir knew then; the snapshot may be kept. It ends with the
// recording, or with each's error. One that ends in the middle is played up to there: the
// error is then a *recording.TruncatedError, to be told as a note.
func playWith(ctx context.Context, path string, o memory.Options, each func(f *recording.Frame, snapshot *memory.Snapshot) error) error {
	file, r, err := openRecording(path)
	if err != nil {
		return err
	}
	defer file.Close()
	defer r.Close()
	p := &pipelinePlayer{memory: memory.New(o), sources: map[recordedSource][]manager.Processor{}}
	for ctx.Err() == nil {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if err := p.play(ctx, &f); err != nil {
			return err
		}
		if err := each(&f, p.memory.Snapshot()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// firstMoment returns the moment of a recording's first frame.
func firstMoment(path string) (time.Time, error) {
	file, r, err := openRecording(path)
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	defer r.Close()
	f, err := r.Next()
	if errors.Is(err, io.EOF) {
		err = errors.New("the recording holds nothing yet")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read %s: %w", path, err)
	}
	return f.Now, nil
}

// pipelinePlayer leads a recording through the pipeline to a memory of its own, in one
// goroutine: every number is what it was when it was recorded.
type pipelinePlayer struct {
	memory  *memory.Sink
	sources map[recordedSource][]manager.Processor
}

// recordedSource names a source of a recording.
type recordedSource struct {
	source string
	node   metric.NodeName
}

// play does with a frame what the weir did that recorded it.
func (p *pipelinePlayer) play(ctx context.Context, f *recording.Frame) error {
	who := recordedSource{f.Source, f.Node}
	switch f.Kind {
	case recording.Begin:
		if f.Fresh {
			for who := range p.sources {
				p.memory.Forget(who.source, who.node)
			}
			clear(p.sources)
		}
	case recording.Gone:
		p.memory.Forget(f.Source, f.Node)
		delete(p.sources, who)
	case recording.Round:
		processors := p.sources[who]
		if processors == nil {
			b := f.Batch
			processors = pipeline(manager.Spec{Name: f.Source + "/" + string(f.Node), Kind: f.Source, Node: f.Node, Interval: b.Interval})
			p.sources[who] = processors
		}
		for _, step := range processors {
			step.Process(f.Facts, f.Batch, f.Now)
		}
		return p.memory.Write(ctx, f.Batch)
	}
	return nil
}
