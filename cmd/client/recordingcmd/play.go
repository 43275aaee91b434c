package recordingcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/memory"
)

// Play plays the recording at path through the processors of pipeline into a memory sink. It calls
// each after every frame with the snapshot at that time, which each may keep. It ends with the
// recording or with the error of each. A recording that ends in the middle is played up to that
// point; the error is then a *recording.TruncatedError. line shows how much was played; it may be nil.
func Play(ctx context.Context, path string, line *cli.Progress, pipeline func(manager.Spec) []manager.Processor, each func(f *recording.Frame, snapshot *memory.Snapshot) error) error {
	file, err := openFile(path)
	if err != nil {
		return err
	}
	defer file.Close()
	p := &pipelinePlayer{memory: memory.New(memory.Options{}), pipeline: pipeline, sources: map[metric.SourceKey][]manager.Processor{}}
	for f, err := range file.frames(ctx, line) {
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
	return nil
}

// pipelinePlayer plays a recording in one goroutine. Every number is the same as during the
// recording.
type pipelinePlayer struct {
	memory   *memory.Sink
	pipeline func(manager.Spec) []manager.Processor
	sources  map[metric.SourceKey][]manager.Processor
	gone     []metric.SourceKey // the sources that were gone since the last round
}

// play handles a frame as the recording weir did.
func (p *pipelinePlayer) play(ctx context.Context, f *recording.Frame) error {
	key := metric.SourceKey{Source: f.Source, Node: f.Node}
	switch f.Kind {
	case recording.Begin:
		if f.Fresh {
			p.gone = slices.AppendSeq(p.gone, maps.Keys(p.sources))
		}
	case recording.Gone:
		// Nothing is forgotten after the last round: an older weir recorded all its sources as gone when
		// it ended.
		p.gone = append(p.gone, key)
	case recording.Round:
		for _, gone := range p.gone {
			p.memory.Forget(gone.Source, gone.Node)
			delete(p.sources, gone)
		}
		p.gone = p.gone[:0]
		processors := p.sources[key]
		if processors == nil {
			b := f.Batch
			processors = p.pipeline(manager.Spec{Name: f.Source + "/" + string(f.Node), Kind: f.Source, Node: f.Node, Interval: b.Interval})
			p.sources[key] = processors
		}
		for _, step := range processors {
			step.Process(f.Facts, f.Batch, f.Now)
		}
		return p.memory.Write(ctx, f.Batch)
	}
	return nil
}
