package humanize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-metrics/weir/internal/humanize"
)

func ExampleBytes() {
	for _, v := range []float64{0, 512, 1023.4, 1536, 98.76 * (1 << 20), 342 << 20, 1023.4 * (1 << 20), 1023.6 * (1 << 20), 1.5 * (1 << 30), 9.28 * (1 << 40), -4 << 20} {
		fmt.Print(humanize.Bytes(v), " ")
	}
	// Output: 0 512 1023 1.5Ki 98.8Mi 342Mi 1023Mi 1Gi 1.5Gi 9.28Ti -4Mi
}

func ExampleCores() {
	for _, v := range []float64{0, 34_000, 2_460_000, 9_960_000, 72e6, 1771e6, 9.9994e9, 9.9996e9, 12.34e9, 168.3e9, 1683.2e9} {
		fmt.Print(humanize.Cores(v), " ")
	}
	// Output: 0m 0.034m 2.5m 10m 72m 1771m 9999m 10 12.3 168 1,683
}

func ExampleCoresLike() {
	column := []float64{0, 34_000, 2_460_000, 72e6, 350e6, 999.6e6, 6058e6, 9.9996e9, 12.34e9, 1683.2e9}
	for _, largest := range []float64{9.9994e9, 9.9996e9} {
		format := humanize.CoresLike(largest)
		for _, v := range column {
			fmt.Print(format(v), " ")
		}
		fmt.Println("|")
	}
	// Output:
	// 0m 0.034m 2.5m 72m 350m 1000m 6058m 10,000m 12,340m 1,683,200m |
	// 0 <0.001 0.002 0.072 0.35 1 6.06 10 12.3 1,683 |
}

func ExamplePercent() {
	for _, v := range []float64{0, 0.0004, 0.004, 0.073, 0.1254, 0.83, 0.9996, 1.374, 12.5} {
		fmt.Print(humanize.Percent(v), " ")
	}
	// Output: 0% <0.1% 0.4% 7.3% 12.5% 83% 100% 137% 1,250%
}

func ExampleDecimal() {
	fmt.Println(humanize.Decimal(0.83333, 4), humanize.Decimal(2, 3), humanize.Decimal(1234.5, 1), humanize.Number(-1234567))
	// Output: 0.8333 2 1,234.5 -1,234,567
}

func ExampleCount() {
	fmt.Println(humanize.Count(1, "pod"), humanize.Count(1683, "pod"), humanize.Count(2, "process"), humanize.Count(0, "entry"))
	// Output: 1 pod 1,683 pods 2 processes 0 entries
}

func ExampleDuration() {
	for _, d := range []time.Duration{0, 250 * time.Microsecond, 1940 * time.Microsecond, 12_345 * time.Microsecond, 700 * time.Millisecond, 45 * time.Second,
		12_440 * time.Millisecond, 59_960 * time.Millisecond, 90 * time.Second, 5 * time.Minute, 125*time.Minute + 20*time.Second, 76 * time.Hour, 72 * time.Hour, -9 * time.Second} {
		fmt.Print(humanize.Duration(d), " ")
	}
	// Output: 0s 250µs 1.9ms 12.3ms 0.7s 45s 12.4s 1m 1m30s 5m 2h5m 3d4h 3d -9s
}

func ExampleAgo() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, d := range []time.Duration{59 * time.Second, 200 * time.Millisecond, -9 * time.Second, 125 * time.Minute} {
		fmt.Print(humanize.Ago(now.Add(-d), now), "; ")
	}
	// Output: 59s ago; just now; in 9s; 2h5m ago;
}

func ExampleClock() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	fmt.Println(humanize.Clock(now.Add(-432*time.Second), now))
	fmt.Println(humanize.ClockMillis(now.Add(125*time.Millisecond), now))
	fmt.Println(humanize.Clock(now.Add(-24*time.Hour), now))
	// Output:
	// 11:52:48 UTC
	// 12:00:00.125 UTC
	// 2026-11-21 12:00:00 UTC
}

func ExampleList() {
	names := []string{"a", "b", "c", "d", "e"}
	fmt.Println(humanize.List(names, 2))
	fmt.Println(humanize.List(names[:3], 0))
	fmt.Println(humanize.Or(names[:2]))
	// Output:
	// a, b and 3 more
	// a, b and c
	// a or b
}

// TestBytesAreQuantities checks that Bytes returns a valid Kubernetes quantity, and that it differs
// from the given value by at most half of its last digit.
func TestBytesAreQuantities(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		v := math.Floor(math.Exp2(r.Float64() * 62))
		text := humanize.Bytes(v)
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Fatalf("%.0f is %s: %v", v, text, err)
		}
		if got := q.AsApproximateFloat64(); math.Abs(got-v) > 0.00501*v {
			t.Errorf("%.0f is written %s, which is %.0f", v, text, got)
		}
	}
}
