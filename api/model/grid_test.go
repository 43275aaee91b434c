package model

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/cmptest"
)

// TestGrid puts numbers measured at the given seconds, each with its own value, on a grid with a
// step of 15 seconds and a maximum age of 60, until second 300.
func TestGrid(t *testing.T) {
	g := newGrid(15 * time.Second)
	f := func(name string, measured []int64, from, to int64, live bool, want ...[2]int64) {
		t.Helper()
		var points []point
		for _, s := range measured {
			points = append(points, point{s * int64(time.Second), float64(s)})
		}
		var got [][2]int64
		for _, p := range g.align(nil, points, from*int64(time.Second), to*int64(time.Second), 300*int64(time.Second), live) {
			got = append(got, [2]int64{p.at / int64(time.Second), int64(p.value)})
		}
		cmptest.Equal(t, fmt.Sprintf("%s: measured at %v, from %d to %d", name, measured, from, to), want, got)
	}
	f("nothing measured", nil, 0, 300, true)
	f("one a step", []int64{61, 76, 91}, 0, 300, false, [2]int64{60, 61}, [2]int64{75, 76}, [2]int64{90, 91})
	f("on the grid", []int64{60, 75}, 0, 300, false, [2]int64{60, 60}, [2]int64{75, 75})
	f("the last of two in a step", []int64{61, 74, 76}, 0, 300, false, [2]int64{60, 74}, [2]int64{75, 76})
	f("a step missed", []int64{74, 90}, 0, 300, false, [2]int64{60, 74}, [2]int64{75, 74}, [2]int64{90, 90})
	f("from is included", []int64{61, 76, 91}, 75, 300, false, [2]int64{75, 76}, [2]int64{90, 91})
	f("from between two", []int64{61, 76, 91}, 76, 300, false, [2]int64{90, 91})
	f("to is included", []int64{61, 76, 91}, 0, 75, false, [2]int64{60, 61}, [2]int64{75, 76})
	f("from after the end", []int64{61}, 301, 400, true)
	f("a hole longer than the reach", []int64{1, 106}, 0, 300, false,
		[2]int64{0, 1}, [2]int64{15, 1}, [2]int64{30, 1}, [2]int64{45, 1}, [2]int64{60, 1}, [2]int64{105, 106})
	f("carried on while it is served", []int64{271}, 0, 300, true, [2]int64{270, 271}, [2]int64{285, 271}, [2]int64{300, 271})
	f("carried on no further than the reach", []int64{181}, 0, 300, true,
		[2]int64{180, 181}, [2]int64{195, 181}, [2]int64{210, 181}, [2]int64{225, 181}, [2]int64{240, 181})
	// A clock that was wrong by 54 years costs neither time nor points.
	f("ages ago", []int64{1, 1_700_000_000}, 1_699_999_999, 1_700_000_000, false)
}

func TestGridOfYearsIsQuick(t *testing.T) {
	g := newGrid(time.Second)
	until := int64(1_700_000_000) * int64(time.Second)
	got := g.align(nil, []point{{0, 1}, {until, 2}}, 0, until, until, true)
	if len(got) != 62 || got[61] != (point{until, 2}) { // one minute, its end, and the last point
		t.Errorf("got %d points ending in %v, want 62 ending in {%d 2}", len(got), got[len(got)-1], until)
	}
}

func TestGridStepsAreWholeSeconds(t *testing.T) {
	for resolution, want := range map[time.Duration]time.Duration{
		0: time.Second, 300 * time.Millisecond: time.Second, 2500 * time.Millisecond: 2 * time.Second, time.Minute: time.Minute,
	} {
		if got := time.Duration(newGrid(resolution).step); got != want {
			t.Errorf("step for a resolution of %v: got %v, want %v", resolution, got, want)
		}
	}
	g := newGrid(15 * time.Second)
	for at, want := range map[int64]int64{-1: -15, -15: -15, 0: 0, 14: 0, 15: 15} {
		if got := g.floor(at * int64(time.Second)); got != want*int64(time.Second) {
			t.Errorf("floor(%ds): got %v, want %ds", at, time.Duration(got), want)
		}
	}
}

// FuzzGrid checks what is true of every grid: points lie on it, in order and within bounds, and
// each is the newest number from before the end of its step.
func FuzzGrid(f *testing.F) {
	f.Add([]byte{1, 15, 15, 15}, int64(0), int64(300), true)
	f.Add([]byte{200, 1, 1, 255, 255, 3}, int64(17), int64(1000), false)
	f.Fuzz(func(t *testing.T, gaps []byte, from, to int64, live bool) {
		const second = int64(time.Second)
		g := newGrid(15 * time.Second)
		var measured []point
		at := int64(0)
		for _, gap := range gaps {
			at += int64(gap) * second / 3
			measured = append(measured, point{at, float64(len(measured))})
		}
		until := at + 100*second
		from, to = from%until, to%until
		got := g.align(nil, measured, from, to, until, live)
		if !slices.IsSortedFunc(got, func(a, b point) int { return int((a.at - b.at) / second) }) {
			t.Fatalf("points are out of order: %v", got)
		}
		for _, p := range got {
			newest := point{at: -1}
			for _, m := range measured {
				if m.at < p.at+g.step {
					newest = m
				}
			}
			if p.at%g.step != 0 || p.at < from || p.at > to || p.at > until || p.value != newest.value || newest.at < p.at-g.maxAge {
				t.Fatalf("point %v of %v from %d to %d: the newest is %v", p, measured, from, to, newest)
			}
		}
		// Each step with a number has a point.
		for _, m := range measured {
			slot := g.floor(m.at)
			if slot >= from && slot <= to && !slices.ContainsFunc(got, func(p point) bool { return p.at == slot }) {
				t.Fatalf("measured at %d: no point at %d among %v", m.at, slot, got)
			}
		}
	})
}
