package remotewrite

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	writev2 "github.com/prometheus/client_golang/exp/api/remote/genproto/v2"
	"google.golang.org/protobuf/proto"
)

// The fields of prometheus.WriteRequest, by the numbers of
// https://prometheus.io/docs/specs/prw/remote_write_spec/.
const (
	oldSeries                   = 1
	oldLabels, oldSamples       = 1, 2
	oldLabelName, oldLabelValue = 1, 2
	oldValue, oldTime           = 1, 2
)

// downgrade makes a request of version 1.0 of one of version 2.0. Metadata are left
// out, for 1.0 has them elsewhere.
func downgrade(message []byte) ([]byte, error) {
	var r writev2.Request
	if err := proto.Unmarshal(message, &r); err != nil {
		return nil, fmt.Errorf("read a request of version 2.0: %w", err)
	}
	var out, one, part []byte
	for _, ts := range r.Timeseries {
		one = one[:0]
		for i := 0; i+1 < len(ts.LabelsRefs); i += 2 {
			name, value := ts.LabelsRefs[i], ts.LabelsRefs[i+1]
			if int(max(name, value)) >= len(r.Symbols) {
				return nil, errors.New("read a request of version 2.0: a label has no symbol")
			}
			part = protowire.AppendTag(part[:0], oldLabelName, protowire.BytesType)
			part = protowire.AppendString(part, r.Symbols[name])
			part = protowire.AppendTag(part, oldLabelValue, protowire.BytesType)
			part = protowire.AppendString(part, r.Symbols[value])
			one = protowire.AppendTag(one, oldLabels, protowire.BytesType)
			one = protowire.AppendBytes(one, part)
		}
		for _, sample := range ts.Samples {
			part = protowire.AppendTag(part[:0], oldValue, protowire.Fixed64Type)
			part = protowire.AppendFixed64(part, math.Float64bits(sample.Value))
			part = protowire.AppendTag(part, oldTime, protowire.VarintType)
			part = protowire.AppendVarint(part, uint64(sample.Timestamp))
			one = protowire.AppendTag(one, oldSamples, protowire.BytesType)
			one = protowire.AppendBytes(one, part)
		}
		out = protowire.AppendTag(out, oldSeries, protowire.BytesType)
		out = protowire.AppendBytes(out, one)
	}
	return out, nil
}
