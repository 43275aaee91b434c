package resourcemetrics

import (
	"math"
	"testing"

	"github.com/weir-metrics/weir/cluster/resourceusage"
)

// FuzzQuantity compares the text with that of the library.
func FuzzQuantity(f *testing.F) {
	for _, v := range []int64{
		0, 1, 9, 10, 999, 1000, 1001, 1023, 1024, 1025, 10_000, 1 << 20, 1_000_000, 3 << 30, 1_500_000_000,
		1e9, 1e12, 1e15, 1e18, 1 << 40, 1 << 50, 1 << 60, 1<<60 + 1, math.MaxInt64 - 1, math.MaxInt64,
	} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v int64) {
		v &= math.MaxInt64
		// Fuzzing would seldom find the round numbers near v.
		for _, v := range []int64{v, v / 1000 * 1000, v / 1e6 * 1e6, v / 1e9 * 1e9, v &^ 0x3ff, v &^ 0xfffff, v >> 30 << 30} {
			list := resourceList(&resourceusage.Usage{CPU: v, Memory: v, Swap: v}, true)
			cpu, memory, swap := list.Cpu(), list.Memory(), list[resourceSwap]
			q := cpuText(v)
			if got := string(q.append(nil)); got != cpu.String() || len(got) != q.size() {
				t.Errorf("%d nanocores: got %q of %d bytes, want %q", v, got, q.size(), cpu.String())
			}
			q = memoryText(v)
			if got := string(q.append(nil)); got != memory.String() || len(got) != q.size() {
				t.Errorf("%d bytes: got %q of %d bytes, want %q", v, got, q.size(), memory.String())
			}
			if swap.String() != memory.String() {
				t.Errorf("%d bytes: got %q of swap, want %q as of memory", v, swap.String(), memory.String())
			}
		}
	})
}

// TestWidth checks the numbers that have one more digit than the one before.
func TestWidth(t *testing.T) {
	f := func(v uint64, want uint8) {
		t.Helper()
		if got := countDigits(v); got != want {
			t.Errorf("%d: got %d digits, want %d", v, got, want)
		}
	}
	f(0, 1)
	for digits, v := uint8(1), uint64(1); digits <= 19; digits, v = digits+1, v*10 {
		f(v, digits)
		f(v*10-1, digits)
	}
	f(math.MaxUint64, 20)
}
