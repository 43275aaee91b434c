package manager

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/cmptest"
)

// Sinks returns for each sink when its last write succeeded, its last error, and how many
// batches are queued and were dropped.
func TestSinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left on device")
		writesDone := 0
		fails := writes(func(context.Context, *metric.Batch) error {
			time.Sleep(3 * time.Millisecond) // of synctest's time
			if writesDone++; writesDone > 1 {
				return full
			}
			return nil
		})
		hangs := writes(func(ctx context.Context, _ *metric.Batch) error {
			<-ctx.Done()
			return nil
		})
		var specs []Spec
		for _, node := range []string{"a", "b", "c", "d"} {
			specs = append(specs, healthy().spec(node, interval, timeout))
		}
		h := build(t, Options{Shutdown: time.Second, Sinks: []NamedSink{
			{Name: "well", Sink: newDiary()}, {Name: "fails", Sink: fails}, {Name: "hangs", Sink: hangs, Queue: 2, Deadline: time.Hour},
		}}, specs...)
		h.until(time.Second)
		// The four are read in the first milliseconds. One of them is in the write that hangs.
		got := h.m.Sinks()
		for i := range got {
			got[i].Succeeded = got[i].Succeeded.Truncate(time.Second)
		}
		want := []SinkStatus{
			{Name: "well", Queue: 256, Succeeded: h.start},
			{Name: "fails", Queue: 256, Succeeded: h.start, Took: 3 * time.Millisecond, Err: full},
			{Name: "hangs", Queue: 2, Queued: 2, Dropped: 1},
		}
		cmptest.Equal(t, "Sinks", want, got, cmpopts.EquateErrors())
		if _, err := h.end(); err != nil {
			t.Error(err)
		}
	})
}

// A sink that is slow for a moment, as the memory is when a large cluster is read first, loses no batch
// if reads wait for it. Another sink drops what does not fit.
func TestReadsWaitForSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := writes(func(context.Context, *metric.Batch) error {
			time.Sleep(100 * time.Millisecond) // of synctest's time
			return nil
		})
		var specs []Spec
		for i := range 20 {
			specs = append(specs, healthy().spec(fmt.Sprint("n", i), interval, timeout))
		}
		h := build(t, Options{Sinks: []NamedSink{
			{Name: "waited for", Sink: slow, Queue: 2, Wait: 5 * time.Second}, {Name: "other", Sink: slow, Queue: 2},
		}}, specs...)
		h.until(5 * time.Second)
		got := h.m.Sinks()
		if got[0].Dropped != 0 || got[1].Dropped == 0 {
			t.Errorf("%d batches of the sink that reads wait for were dropped, and %d of the other one; want none and some", got[0].Dropped, got[1].Dropped)
		}
		if _, err := h.end(); err != nil {
			t.Error(err)
		}
	})
}
