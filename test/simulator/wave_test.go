package simulator

import (
	"fmt"
	"math/big"
	"testing"
)

func waves(t *testing.T, do func(t *testing.T, w wave, peak int64)) {
	for i := range 200 {
		peak := []int64{50_000, 3_000_000, 107_000_000, 2_000_000_000, 51_200_000_000}[i%5]
		t.Run(fmt.Sprintf("%d/peak=%d", i, peak), func(t *testing.T) {
			do(t, newWave(key(7).num(int64(i)), peak), peak)
		})
	}
}

func TestWaveNeverFallsNorExceedsItsPeak(t *testing.T) {
	waves(t, func(t *testing.T, w wave, peak int64) {
		if got := w.at(0); got != 0 {
			t.Errorf("at(0) = %d, want 0", got)
		}
		if got := w.at(-5); got != 0 {
			t.Errorf("at(-5) = %d, want 0", got)
		}
		k := key(w.phase)
		last, at := int64(0), int64(0)
		for i := range int64(3000) {
			step := k.num(i).between("step", 1, 1<<(10+i%25))
			at += step
			v := w.at(at)
			// Five parts are each rounded down, so a difference is wrong by at most a few
			// units.
			if limit := used(peak, step) + 8; v < last || v-last > limit {
				t.Fatalf("from %d to %d ns: counter went from %d to %d, want a rise of 0 to %d", at-step, at, last, v, limit)
			}
			last = v
		}
	})
}

// TestWaveIsTheIntegralOfItsRate compares with a second implementation that
// uses only the formulas, in exact rational arithmetic.
func TestWaveIsTheIntegralOfItsRate(t *testing.T) {
	rat := func(v int64) *big.Rat { return new(big.Rat).SetInt64(v) }
	// area is rate × t / 1e9.
	area := func(rate, t *big.Rat) *big.Rat { return new(big.Rat).Quo(new(big.Rat).Mul(rate, t), rat(second)) }
	rampArea := func(r ramp, t int64) *big.Rat {
		n, x := t/(2*r.half), t%(2*r.half)
		sum := area(rat(r.rate), rat(n*r.half))
		height := func(x int64) *big.Rat { return new(big.Rat).Mul(rat(r.rate), big.NewRat(x, r.half)) }
		half := big.NewRat(1, 2)
		if x <= r.half { // a triangle
			return sum.Add(sum, area(new(big.Rat).Mul(half, height(x)), rat(x)))
		}
		// the first triangle and a trapezium
		sum.Add(sum, area(new(big.Rat).Mul(half, rat(r.rate)), rat(r.half)))
		mean := new(big.Rat).Mul(half, new(big.Rat).Add(rat(r.rate), height(2*r.half-x)))
		return sum.Add(sum, area(mean, rat(x-r.half)))
	}
	pulseArea := func(p pulse, t int64) *big.Rat {
		return area(rat(p.rate), rat(t/p.period*p.on+min(t%p.period, p.on)))
	}
	waves(t, func(t *testing.T, w wave, _ int64) {
		total := func(x int64) *big.Rat {
			sum := area(rat(w.base), rat(x))
			sum.Add(sum, rampArea(w.ramp, x))
			sum.Add(sum, pulseArea(w.burst, x))
			return sum.Add(sum, pulseArea(w.step, x))
		}
		for i := range int64(30) {
			life := key(w.phase).num(i).between("life", 1, 1<<(20+i))
			want := total(w.phase + life)
			want.Sub(want, total(w.phase))
			want.Add(want, area(rat(w.first.rate), rat(min(life, w.first.on))))
			diff := new(big.Rat).Sub(want, rat(w.at(life)))
			// Each whole ramp is rounded down once, and so is each other part.
			off, _ := diff.Float64()
			if limit := float64(2*((w.phase+life)/w.ramp.half) + 12); off > limit || off < -limit {
				t.Fatalf("at(%d) = %d, want %s within %.0f", life, w.at(life), want.FloatString(3), limit)
			}
		}
	})
}

// TestWaveIsNotLinear checks that the means over two neighbouring scrape
// intervals almost always differ, so that a wrong window gives a wrong rate.
func TestWaveIsNotLinear(t *testing.T) {
	const interval = 15 * second
	waves(t, func(t *testing.T, w wave, peak int64) {
		forgiving, sleeping := 0, 0
		const rounds = 400
		for i := range int64(rounds) {
			at := 3600*second + i*interval
			one, next := w.at(at+interval)-w.at(at), w.at(at+2*interval)-w.at(at+interval)
			if one == 0 && next == 0 {
				sleeping++
				continue
			}
			if d := float64(one-next) / float64(one+next); d < 1e-4 && d > -1e-4 {
				forgiving++
			}
		}
		if most := rounds / 20; forgiving > most {
			t.Errorf("%d of %d neighbouring windows have the same mean, want at most %d", forgiving, rounds, most)
		}
		if w.base > 0 && sleeping > 0 {
			t.Errorf("%d windows without use in a wave with a base of %d", sleeping, w.base)
		}
	})
}

func TestTideStaysInItsBounds(t *testing.T) {
	for i := range int64(100) {
		td := newTide(key(3).num(i), 64<<20)
		seen := map[int64]bool{}
		for now := start.UnixNano(); now < start.UnixNano()+600*second; now += 7 * second / 3 {
			v := td.at(now)
			if v%page != 0 || v < 64<<20/10-page || v > 64<<20 {
				t.Fatalf("tide %d at %d = %d, want whole pages between a tenth and all of 64 MiB", i, now, v)
			}
			seen[v] = true
		}
		if len(seen) < 10 {
			t.Errorf("tide %d took %d values in ten minutes, want at least 10", i, len(seen))
		}
	}
}

func TestHousekeepingIsEvery10To15Seconds(t *testing.T) {
	for i := range int64(50) {
		k := key(11).num(i)
		now := start.UnixNano()
		last := housekeeping(k, now)
		if last > now {
			t.Fatalf("housekeeping(%d) = %d, in the future", now, last)
		}
		for range 3000 {
			now += k.num(now).between("step", 1, 2*second)
			at := housekeeping(k, now)
			if age := now - at; age < 0 || age >= 15*second {
				t.Fatalf("at %d the last reading is %d ns old, want 0 to 15 s", now, age)
			}
			if gap := at - last; gap != 0 && (gap < 10*second || gap > 15*second) {
				t.Fatalf("readings at %d and %d are %d ns apart, want 10 to 15 s", last, at, gap)
			}
			last = at
		}
	}
}
