package remotewrite

import (
	"fmt"
	"math"

	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of prometheus.WriteRequest, by the numbers of
// https://prometheus.io/docs/specs/prw/remote_write_spec/.
const (
	oldSeries                   = 1
	oldLabels, oldSamples       = 1, 2
	oldLabelName, oldLabelValue = 1, 2
	oldValue, oldTime           = 1, 2
)

// downgrade converts a request of version 2.0 to version 1.0. It omits metadata, which version
// 1.0 has in other messages.
func downgrade(message []byte) ([]byte, error) {
	var r writev2.Request
	if err := r.UnmarshalVT(message); err != nil {
		return nil, fmt.Errorf("read a request of version 2.0: %w", err)
	}
	var out, series, part []byte
	var labels []string
	for _, ts := range r.Timeseries {
		series = series[:0]
		labels = writev2.DesymbolizeLabels(ts.LabelsRefs, r.Symbols, labels)
		for i := 0; i < len(labels); i += 2 {
			part = appendField(part[:0], oldLabelName, labels[i])
			part = appendField(part, oldLabelValue, labels[i+1])
			series = appendField(series, oldLabels, part)
		}
		for _, sample := range ts.Samples {
			part = protowire.AppendTag(part[:0], oldValue, protowire.Fixed64Type)
			part = protowire.AppendFixed64(part, math.Float64bits(sample.Value))
			part = protowire.AppendTag(part, oldTime, protowire.VarintType)
			part = protowire.AppendVarint(part, uint64(sample.Timestamp))
			series = appendField(series, oldSamples, part)
		}
		out = appendField(out, oldSeries, series)
	}
	return out, nil
}

// appendField appends a field with a text or a message.
func appendField[T string | []byte](to []byte, n protowire.Number, content T) []byte {
	to = protowire.AppendTag(to, n, protowire.BytesType)
	to = protowire.AppendVarint(to, uint64(len(content)))
	return append(to, content...)
}
