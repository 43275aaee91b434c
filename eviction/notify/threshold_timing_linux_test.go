//go:build linux && e2e

package notify_test

import (
	"testing"
	"time"

	"github.com/weir-metrics/weir/eviction/notify"
	"github.com/weir-metrics/weir/test/memoryload"
)

// BenchmarkCrossing measures the time from the crossing in another process to the call. An
// operation is a whole round, in which the child fills its memory and frees it.
func BenchmarkCrossing(b *testing.B) {
	const figure = 16 * mebi
	dir := memoryload.MemoryCgroup(b)
	w := memoryload.Start(b, dir)
	n, notices := listen(b, notify.Options{MaxInterval: time.Hour, MinInterval: time.Microsecond})
	if err := update(n, usageOf(dir, "", figure)); err != nil {
		b.Fatal(err)
	}
	var calls []time.Duration
	for b.Loop() {
		call, _ := cross(b, w, dir, figure, notices)
		calls = append(calls, call)
		w.Command("free")
		await(b, notices, "the way down", below)
	}
	b.ReportMetric(float64(percentile(calls, 50).Microseconds()), "p50-µs")
	b.ReportMetric(float64(percentile(calls, 99).Microseconds()), "p99-µs")
}

// BenchmarkMove measures an Update that changes the figure.
func BenchmarkMove(b *testing.B) {
	dir := memoryload.MemoryCgroup(b)
	n, _ := listen(b, notify.Options{MaxInterval: time.Hour})
	for i := int64(0); b.Loop(); i++ {
		if err := update(n, usageOf(dir, "", (16+i%2)*mebi)); err != nil {
			b.Fatal(err)
		}
	}
}
