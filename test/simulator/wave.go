package simulator

import "math/bits"

const second = int64(1e9)

// A wave is a counter: the usage in the first life nanoseconds of an instance.
// It never falls and is an exact integer. Rates are units per second: with
// nanocores as the rate, the counter is in nanoseconds of CPU time; with bytes
// per second, it is in bytes.
//
//	base   ────────────────   always
//	ramp   ╱╲╱╲╱╲╱╲╱╲╱╲╱╲   up and down, so that the counter is never linear
//	burst  ▁█▁▁█▁▁█▁▁█▁▁█   seconds
//	step   ▁▁▁▁▁▁████████   minutes
//	first  █▁▁▁▁▁▁▁▁▁▁▁▁▁   once: the cost of the start
type wave struct {
	base        int64
	ramp        ramp
	burst, step pulse
	first       pulse // period is not used
	phase       int64 // the position in its cycles at which the instance starts
	before      int64 // the sum of the cycles at that position
}

// newWave returns the wave of an instance. Its rate never exceeds peak. One
// wave in sixteen sleeps: it uses nothing for a minute or two and then has a
// burst. Real containers are idle too, and a rate of zero is a value.
func newWave(k key, peak int64) wave {
	part := func(what string, low, high int64) int64 {
		return int64(float64(peak) / 1000 * float64(k.between(what, low, high)))
	}
	w := wave{
		base:  part("base", 20, 100),
		ramp:  ramp{rate: part("ramp", 100, 300), half: awkward(k.with("half"), 14*second, 46*second) / 2},
		burst: pulse{rate: part("burst", 150, 350), period: awkward(k.with("burst period"), 3*second, 19*second)},
		step:  pulse{rate: part("step", 50, 200), period: awkward(k.with("step period"), 40*second, 170*second)},
		first: pulse{rate: part("first", 20, 50), on: k.between("first on", second/10, second)},
		phase: k.between("phase", 0, 200*second),
	}
	w.burst.on = w.burst.period / 100 * k.between("burst on", 10, 45)
	if k.between("sleeps", 0, 16) == 0 {
		w.base, w.ramp.rate, w.step.rate = 0, 0, 0
		w.burst.period = awkward(k.with("sleep"), 60*second, 120*second)
		w.burst.on = w.burst.period / 100 * k.between("burst on", 3, 9)
	}
	w.step.on = w.step.period / 100 * k.between("step on", 30, 60)
	w.before = w.cycles(w.phase)
	return w
}

// awkward returns a period between low and high that does not divide a usual
// scrape interval and is not divided by one. Over a whole number of periods,
// every wave is a straight line.
func awkward(k key, low, high int64) int64 {
	near := func(a, b int64) bool { // reports whether a is a multiple of b, or within a twelfth of b of one
		rest := a % b
		return rest < b/12 || rest > b-b/12
	}
	for i := int64(0); ; i++ {
		p := k.num(i).between("period", low, high)
		bad := false
		for _, interval := range [...]int64{10 * second, 15 * second, 20 * second, 30 * second, 60 * second} {
			bad = bad || near(interval, p) && p <= interval || near(p, interval) && p > interval
		}
		if !bad {
			return p
		}
	}
}

// at returns the counter after life nanoseconds. It is 0 before the instance
// begins.
func (w *wave) at(life int64) int64 {
	if life <= 0 {
		return 0
	}
	return w.cycles(w.phase+life) - w.before + used(w.first.rate, min(life, w.first.on))
}

func (w *wave) cycles(t int64) int64 {
	return used(w.base, t) + w.ramp.at(t) + w.burst.at(t) + w.step.at(t)
}

// used returns rate × t, rounded down. t is in nanoseconds.
func used(rate, t int64) int64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(t))
	q, _ := bits.Div64(hi, lo, uint64(second))
	return int64(q)
}

// A ramp rises linearly from 0 to rate in half a period and then falls back.
type ramp struct{ rate, half int64 }

func (r ramp) at(t int64) int64 {
	if r.rate == 0 {
		return 0
	}
	full := 2 * r.rising(r.half)
	n, x := t/(2*r.half), t%(2*r.half)
	if x <= r.half {
		return n*full + r.rising(x)
	}
	return (n+1)*full - r.rising(2*r.half-x)
}

// rising is the integral of the rising edge: rate × x² / 2 half.
func (r ramp) rising(x int64) int64 {
	hi, lo := bits.Mul64(uint64(used(r.rate, x)), uint64(x))
	q, _ := bits.Div64(hi, lo, uint64(2*r.half))
	return int64(q)
}

// A pulse has its rate in the first on nanoseconds of every period, and 0 in
// the rest.
type pulse struct{ rate, period, on int64 }

func (p pulse) at(t int64) int64 {
	if p.rate == 0 {
		return 0
	}
	return used(p.rate, t/p.period*p.on+min(t%p.period, p.on))
}

const page = 4096

// A tide is a gauge in bytes. It rises and falls between low and high, in whole
// pages.
type tide struct{ low, high, half int64 }

// newTide returns the memory of an instance that stays below limit.
func newTide(k key, limit int64) tide {
	pages := limit / page
	return tide{
		low:  k.between("low", pages*10/100, pages*40/100),
		high: k.between("high", pages*41/100, pages*85/100),
		half: k.between("tide", 30*second, 300*second),
	}
}

// at returns the bytes at now, in nanoseconds since any origin.
func (t tide) at(now int64) int64 {
	x := now % (2 * t.half)
	if x > t.half {
		x = 2*t.half - x
	}
	hi, lo := bits.Mul64(uint64(t.high-t.low), uint64(x))
	q, _ := bits.Div64(hi, lo, uint64(t.half))
	return (t.low + int64(q)) * page
}
