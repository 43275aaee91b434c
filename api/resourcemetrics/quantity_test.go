package resourcemetrics

import (
	"math"
	"testing"

	"github.com/weir-metrics/weir/metric/served"
)

// FuzzQuantity holds what is appended to what the library spells.
func FuzzQuantity(f *testing.F) {
	for _, v := range []int64{
		0, 1, 9, 10, 999, 1000, 1001, 1023, 1024, 1025, 10_000, 1 << 20, 1_000_000, 3 << 30, 1_500_000_000,
		1e9, 1e12, 1e15, 1e18, 1 << 40, 1 << 50, 1 << 60, 1<<60 + 1, math.MaxInt64 - 1, math.MaxInt64,
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v int64) {
		v &= math.MaxInt64
		// The round numbers beside it, which fuzzing would seldom hit.
		for _, v := range []int64{v, v / 1000 * 1000, v / 1e6 * 1e6, v / 1e9 * 1e9, v &^ 0x3ff, v &^ 0xfffff, v >> 30 << 30} {
			u := &served.Use{CPU: v, Memory: v}
			cpu, memory := cpuQuantity(u), memoryQuantity(u)
			if got := string(appendCPU(nil, v)); got != cpu.String() || len(got) > maxQuantity {
				t.Errorf("%d nanocores: got %q, want %q", v, got, cpu.String())
			}
			if got := string(appendMemory(nil, v)); got != memory.String() || len(got) > maxQuantity {
				t.Errorf("%d bytes: got %q, want %q", v, got, memory.String())
			}
		}
	})
}
