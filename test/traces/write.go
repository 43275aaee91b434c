package main

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/weir-metrics/weir/internal/trace"
)

// write writes a trace that trace.Read reads.
func write(w io.Writer, entities []trace.Entity) error {
	columns := map[string]bool{}
	for _, e := range entities {
		for metric := range e.Metrics {
			columns[metric] = true
		}
	}
	head := slices.Sorted(maps.Keys(columns))
	out := csv.NewWriter(w)
	_ = out.Write(append([]string{"time", "name"}, head...)) // errors are those of Flush
	for _, e := range entities {
		rows := map[time.Time][]string{}
		for column, metric := range head {
			for _, r := range e.Metrics[metric] {
				if rows[r.At] == nil {
					rows[r.At] = make([]string, len(head))
				}
				rows[r.At][column] = strconv.FormatFloat(r.Value, 'g', -1, 64)
			}
		}
		for _, at := range slices.SortedFunc(maps.Keys(rows), time.Time.Compare) {
			_ = out.Write(append([]string{at.Format(time.RFC3339Nano), e.Name}, rows[at]...))
		}
	}
	out.Flush()
	return out.Error()
}
