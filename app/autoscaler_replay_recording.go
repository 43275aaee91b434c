package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-metrics/weir/autoscaler/replay"
	"github.com/weir-metrics/weir/autoscaler/replay/recordingreplay"
	"github.com/weir-metrics/weir/client/cli"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/recording"
	"github.com/weir-metrics/weir/sinks/memory"
)

// fromRecording plays the recording through the pipeline, and collects. A recording
// that ends in the middle is replayed up to there.
func (s *replaySource) fromRecording(ctx context.Context, q question) (*replay.Trace, error) {
	for _, name := range q.needs.Named {
		if !slices.Contains(q.needs.Pods, name) {
			return nil, fmt.Errorf("the manifest goes by the metric %s, which is not of pods: a recording has none such: use --prometheus", name)
		}
	}
	selector, err := s.podSelector()
	if err != nil {
		return nil, err
	}
	collector, err := recordingreplay.New(recordingreplay.Options{
		Namespace: metric.Namespace(q.namespace), Kind: q.kind, Name: q.name,
		Selector: selector, From: q.from, To: q.to, Named: q.needs.Pods,
	})
	if err != nil {
		return nil, err
	}
	err = playWith(ctx, s.recording, memory.Options{}, func(f *recording.Frame, snapshot *memory.Snapshot) error {
		switch f.Kind {
		case recording.Scale:
			collector.Scale(f.Scale, f.Now)
		case recording.Round:
			collector.Round(f.Now, f.Facts, snapshot)
		}
		return nil
	})
	var truncated *recording.TruncatedError
	var damaged *recording.DamagedError
	if errors.As(err, &damaged) {
		return nil, cli.Hintf(err, "weir recording cut %s -o FILE saves what is whole.", s.recording)
	}
	if err != nil && !errors.As(err, &truncated) {
		return nil, err
	}
	trace, err := collector.Trace()
	if err != nil {
		return nil, cli.Hintf(err, "%s", "--from and --to choose the time, --namespace and --selector the pods.")
	}
	if truncated != nil {
		trace.Notes = append(trace.Notes, truncated.Error())
	}
	return trace, nil
}
