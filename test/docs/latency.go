package docs

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LatencyRuns has the runs of TestLatency of test/node.
const LatencyRuns = "test/node/testdata/latency.csv"

// swapSuffix ends the name of an actor if the swap is filled, and not the memory.
const swapSuffix = "-swap"

// EvictionLatency returns docs/eviction-rules.md with its table of latencies up to
// date. page is the present text; its other lines are not changed. runs is the
// content of LatencyRuns.
func EvictionLatency(page, runs string) (string, error) {
	before, rest, ok := strings.Cut(page, generatedBegins)
	_, after, ends := strings.Cut(rest, generatedEnds)
	if !ok || !ends {
		return "", fmt.Errorf("the page has no lines %q and %q", generatedBegins, generatedEnds)
	}
	lines, err := csv.NewReader(strings.NewReader(runs)).ReadAll()
	if err != nil {
		return "", fmt.Errorf("read the runs: %w", err)
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	var rows []string // actor and rate, in the order of the file
	values := map[string]map[string][]float64{}
	for _, line := range lines[1:] {
		row := line[column["actor"]] + " " + line[column["rate"]]
		if values[row] == nil {
			rows, values[row] = append(rows, row), map[string][]float64{}
		}
		for name, i := range column {
			if v, err := strconv.ParseFloat(line[i], 64); err == nil { // actor and kernel_oom are no numbers
				values[row][name] = append(values[row][name], v)
			}
		}
	}
	// Every rate's rows follow one another, so that the actors can be compared.
	slices.SortStableFunc(rows, func(a, b string) int {
		_, x, _ := strings.Cut(a, " ")
		_, y, _ := strings.Cut(b, " ")
		return strings.Compare(y, x)
	})
	var b strings.Builder
	b.WriteString("| fill | who acts | runs | decision | of which reading | signal to the process | memory back | below the threshold at the decision | at most |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		actor, rate, _ := strings.Cut(row, " ")
		v := values[row]
		fill := rate + " MiB/s"
		if rate == "0" {
			_, middle, _ := spread(v["fill_mib_s"])
			fill = fmt.Sprintf("as fast as possible, %.0f MiB/s", middle)
		}
		actor, swap := strings.CutSuffix(actor, swapSuffix)
		if swap {
			fill += ", into the swap"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", fill, actor, len(v["run"]), milliseconds(v["decision_ms"]), reading(v["read_ms"]),
			milliseconds(v["signal_ms"]), milliseconds(v["back_ms"]), mebibytes(v["decision_mib"], v["decision_ms"]), mebibytes(v["lowest_mib"], nil))
	}
	return before + generatedBegins + b.String() + generatedEnds + after, nil
}

// spread returns the number of values that are not 0, which means never, their
// median and the largest.
func spread(all []float64) (n int, middle, most float64) {
	var some []float64
	for _, v := range all {
		if v != 0 {
			some = append(some, v)
		}
	}
	if len(some) == 0 {
		return 0, 0, 0
	}
	slices.Sort(some)
	return len(some), some[len(some)/2], some[len(some)-1]
}

// milliseconds returns the median and the largest of times as text, and of how
// many runs if not of all.
func milliseconds(all []float64) string {
	n, middle, most := spread(all)
	if n == 0 {
		return "never"
	}
	text := fmt.Sprintf("%.0f, at most %.0f ms", middle, most)
	if n < len(all) {
		text += fmt.Sprintf(" (%d of %d runs)", n, len(all))
	}
	return text
}

// reading returns the same of the time that an agent read; nobody else says.
func reading(all []float64) string {
	if n, _, _ := spread(all); n == 0 {
		return "–"
	}
	return milliseconds(all)
}

// mebibytes returns the largest of all as text. If times are given, those of
// runs without a time do not count.
func mebibytes(all, times []float64) string {
	if n, _, _ := spread(times); times != nil && n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f MiB", slices.Max(all))
}
