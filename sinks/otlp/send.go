package otlp

import (
	"bytes"
	"context"
	"net/http"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-metrics/weir/sinks/push"
)

// metricsPath is the path of OTLP below the URL of a receiver.
const metricsPath = "/v1/metrics"

// gzipMagic begins each compressed request, and no message of OTLP. A write-ahead log may have requests
// that weir wrote with another value of Options.Uncompressed.
var gzipMagic = []byte{0x1f, 0x8b}

// Sink sends batches to a receiver. Write and Forget may be called by several goroutines and
// never wait for the receiver; Run sends.
type Sink struct{ *push.Sink[labels] }

// New returns a Sink. The error is about certificates or credentials.
func New(o Options) (*Sink, error) {
	o.Options = withDefaults(o.Options)
	sink, err := push.New(o.Options, "otlp", newRequest(&o))
	if err != nil {
		return nil, err
	}
	sink.SetSend(func(ctx context.Context, request []byte) (int, error) {
		var answer collectorpb.ExportMetricsServiceResponse
		if err := send(ctx, sink.Sender, metricsPath, request, &answer); err != nil {
			return 0, err
		}
		partial := answer.GetPartialSuccess()
		return sink.Rejected(int(partial.GetRejectedDataPoints()), partial.GetErrorMessage()), nil
	})
	return &Sink{sink}, nil
}

func withDefaults(o push.Options) push.Options {
	o.NotFound = "is it the address of an OTLP receiver over HTTP? A collector has it at port 4318; port 4317 is for gRPC"
	return o.WithDefaults()
}

// send sends one request, and parses the answer if the receiver accepts it.
func send(ctx context.Context, s *push.Sender, path string, request []byte, answer proto.Message) error {
	header := map[string]string{"Content-Type": "application/x-protobuf"}
	if bytes.HasPrefix(request, gzipMagic) {
		header["Content-Encoding"] = "gzip"
	}
	got, err := s.Post(ctx, &push.Request{Path: path, Body: request, IsTemporary: isTemporary, Header: header})
	if err == nil {
		_ = proto.Unmarshal(got.Body, answer) // the request is not sent again for a body that breaks off
	}
	return err
}

// isTemporary reports whether a request is sent again after an answer with this status, by the
// specification of OTLP.
func isTemporary(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
