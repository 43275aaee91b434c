package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// MaxValues limits the values of a trace in memory: 50 million, which need about 2 GB.
const MaxValues = 50e6

// Read reads a trace from CSV. The first line names the columns, in any order:
//
//	time,name,cpu,memory,memory_request
//	2026-01-02T12:00:00Z,shop/cart/app,0.062,188743680,536870912
//
// A time is in RFC 3339 or in seconds since 1970, and times of one name increase. Each other column is
// a metric, and an empty cell means that it was not measured then. For package resize/replay the
// metrics are cpu in cores, memory in bytes, and cpu_request and memory_request likewise. Entities have
// the order in which they appear. Values must be finite and not negative.
func Read(r io.Reader) ([]Entity, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read the line of column names: %w", noEOF(err))
	}
	t, err := newTable(slices.Clone(head))
	if err != nil {
		return nil, err
	}
	for {
		row, err := rows.Read()
		switch {
		case errors.Is(err, io.EOF) && len(t.entities) == 0:
			return nil, errors.New("the trace has no readings")
		case errors.Is(err, io.EOF):
			return t.entities, nil
		case err != nil:
			return nil, err // it names the line
		}
		if err := t.add(row); err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// table is a trace that is being read.
type table struct {
	head       []string
	time, name int // columns
	entities   []Entity
	last       []time.Time // of each entity
	index      map[string]int
	values     int
}

func newTable(head []string) (*table, error) {
	t := &table{head: head, time: slices.Index(head, "time"), name: slices.Index(head, "name"), index: map[string]int{}}
	if t.time < 0 || t.name < 0 || len(head) < 3 {
		return nil, fmt.Errorf("the first line is %q: it must name the columns time, name and at least one metric, such as cpu", head)
	}
	for i, column := range head {
		if column == "" || slices.Contains(head[:i], column) {
			return nil, fmt.Errorf("the first line names the column %q twice, or has one without a name", column)
		}
	}
	return t, nil
}

func (t *table) add(row []string) error {
	at, err := parseTime(row[t.time])
	if err != nil {
		return err
	}
	i, found := t.index[row[t.name]]
	if !found {
		i = len(t.entities)
		name := string([]byte(row[t.name])) // not the whole line
		t.index[name] = i
		t.entities = append(t.entities, Entity{Name: name, Metrics: map[string]Series{}})
		t.last = append(t.last, time.Time{})
	}
	if found && !at.After(t.last[i]) {
		return fmt.Errorf("%s is not after the time before it of %q: sort the lines by time", at.Format(time.RFC3339), row[t.name])
	}
	t.last[i] = at
	for column, text := range row {
		if column == t.time || column == t.name || text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0) || math.IsInf(v, 0) {
			return fmt.Errorf("%s %q must be a number that is not negative", t.head[column], text)
		}
		if t.values++; t.values > MaxValues {
			return fmt.Errorf("a trace may have %.0f values: split it into files", MaxValues)
		}
		metrics := t.entities[i].Metrics
		metrics[t.head[column]] = append(metrics[t.head[column]], Reading{at, v})
	}
	return nil
}

func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	const most = 1e11 // the year 5138
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(math.Abs(seconds) <= most) {
		return time.Time{}, fmt.Errorf("the time %q must be as 2026-01-02T12:00:00Z or in seconds since 1970", text)
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(part*1e3))*1e6).UTC(), nil
}
