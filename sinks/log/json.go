package log

import (
	"encoding/json"
	"math"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// batchLine is the line of a batch.
type batchLine struct {
	Time     time.Time       `json:"time"`
	Source   string          `json:"source"`
	Node     metric.NodeName `json:"node,omitempty"`
	Samples  int             `json:"samples"`
	Measured int             `json:"measured"`
	Rejected int             `json:"rejected,omitempty"`
	Missing  map[string]int  `json:"missing,omitempty"` // verdicts by reason
	Seconds  float64         `json:"seconds"`           // the read took
	Error    string          `json:"error,omitempty"`
}

// entityLine is the line of an entity. Values are in base units, with Heapster's names.
type entityLine struct {
	Time      time.Time          `json:"time"`
	Kind      string             `json:"kind"`
	Node      metric.NodeName    `json:"node,omitempty"`
	Namespace metric.Namespace   `json:"namespace,omitempty"`
	Pod       metric.PodName     `json:"pod,omitempty"`
	Name      string             `json:"name,omitempty"`
	Part      string             `json:"part,omitempty"`
	Rejected  bool               `json:"rejected,omitempty"`
	Values    map[string]float64 `json:"values,omitempty"`
	Reasons   map[string]string  `json:"reasons,omitempty"` // by group, unless Measured
}

// appendJSON appends a batch as JSON objects, one in each line.
func appendJSON(buf []byte, b *metric.Batch, verbose bool) []byte {
	s := summarize(b)
	line := batchLine{
		Time: b.Ended, Source: b.Source, Node: b.Node, Samples: len(b.Samples),
		Measured: s.measured, Rejected: s.rejected, Seconds: s.duration.Seconds(),
	}
	for i, m := range s.missing {
		if i == 0 {
			line.Missing = map[string]int{}
		}
		line.Missing[m.reason.String()] = m.n
	}
	if b.Err != nil {
		line.Error = b.Err.Error()
	}
	buf = appendLine(buf, line)
	if !verbose {
		return buf
	}
	for i := range b.Samples {
		buf = appendLine(buf, lineOf(b.Ended, &b.Samples[i]))
	}
	return buf
}

func lineOf(read time.Time, s *metric.Sample) entityLine {
	e := &s.Entity
	line := entityLine{
		Time: read, Kind: e.Kind.String(), Node: e.Node, Namespace: e.Namespace, Pod: e.Pod,
		Name: e.Name, Part: e.Part, Rejected: s.Rejected(), Values: map[string]float64{}, Reasons: map[string]string{},
	}
	for id, v := range s.Values.All() {
		d := &metric.Catalogue[id]
		if s.Servable(d.Group) && !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has no NaN and infinity
			line.Values[d.Name] = inBaseUnit(v, d.Unit)
		}
	}
	for g, r := range s.Reasons {
		if r != metric.Unjudged && r != metric.Measured {
			line.Reasons[metric.Group(g).String()] = r.String()
		}
	}
	return line
}

func appendLine(buf []byte, line any) []byte {
	text, err := json.Marshal(line)
	if err != nil { // only for a year after 9999
		text, _ = json.Marshal(map[string]string{"error": err.Error()})
	}
	return append(append(buf, text...), '\n')
}
