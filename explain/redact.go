package explain

import (
	"iter"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// RedactErrors yields verdicts as every reader may see them: the error of a node's read stays only
// on the node's own verdicts. It contains addresses, and a reader who may read the pods of one
// namespace may not see these.
func RedactErrors(verdicts iter.Seq2[metric.Verdict, time.Time]) iter.Seq2[metric.Verdict, time.Time] {
	return func(yield func(metric.Verdict, time.Time) bool) {
		for v, since := range verdicts {
			if k := v.Entity.Kind; k == metric.Pod || k == metric.Container {
				v.Evidence.Err = nil
			}
			if !yield(v, since) {
				return
			}
		}
	}
}
