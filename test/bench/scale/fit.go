//go:build linux

package main

import (
	"fmt"
	"math"
)

// line is the least-squares line through points. R2 is the share of their
// variance that it explains (1 is all).
type line struct {
	Slope     float64 `json:"slope"`
	Intercept float64 `json:"intercept"`
	R2        float64 `json:"r2"`
}

// fit returns the line through the points (x, y). With fewer than two different
// x, all fields are NaN.
func fit(x, y []float64) line {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var xx, xy, yy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 || len(x) < 2 {
		return line{math.NaN(), math.NaN(), math.NaN()}
	}
	l := line{Slope: xy / xx}
	l.Intercept = my - l.Slope*mx
	l.R2 = 1
	if yy > 0 {
		l.R2 = xy * xy / (xx * yy)
	}
	return l
}

// fits are the lines of the values that should be linear in the number of
// nodes.
type fits struct {
	CPU    line `json:"cpuCores"`
	Memory line `json:"memoryBytes"`
}

// fitAll returns the lines through the points. ok is false if there are too few
// points.
func fitAll(points []point) (f fits, ok bool) {
	var x, cpu, memory []float64
	for _, p := range points {
		x, cpu, memory = append(x, float64(p.Nodes)), append(cpu, p.Cores), append(memory, float64(p.Steady))
	}
	f = fits{CPU: fit(x, cpu), Memory: fit(x, memory)}
	return f, !math.IsNaN(f.CPU.Slope)
}

// String returns the lines as text.
func (f fits) String() string {
	return fmt.Sprintf("CPU: %.3g cores and %.3g millicores a node (R² %.4f).\nMemory: %.0f MiB and %.0f KiB a node (R² %.4f).\n",
		f.CPU.Intercept, 1000*f.CPU.Slope, f.CPU.R2, f.Memory.Intercept/(1<<20), f.Memory.Slope/(1<<10), f.Memory.R2)
}
