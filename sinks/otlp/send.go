package otlp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/weir-metrics/weir/sinks/push"
)

// metricsPath is the path of OTLP below the URL of a receiver.
const metricsPath = "/v1/metrics"

// Sink sends batches to a receiver. Write and Forget may be called by several goroutines and
// never wait for the receiver; Run sends.
type Sink struct{ *push.Sink[labels] }

// New returns a Sink. The error is about certificates or credentials.
func New(o Options) (*Sink, error) {
	o.Options = withDefaults(o.Options)
	sink, err := push.New(o.Options, "otlp", newRequest(o.Attributes))
	if err != nil {
		return nil, err
	}
	sink.SetSend(func(ctx context.Context, request []byte) (int, error) {
		var answer collectorpb.ExportMetricsServiceResponse
		if err := send(ctx, sink.Sender, &o.Options, metricsPath, request, &answer); err != nil {
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

// send sends one request until the receiver accepts or rejects it, or ctx ends. It reads the answer to
// an accepted request.
func send(ctx context.Context, s *push.Sender, o *push.Options, path string, request []byte, answer proto.Message) error {
	pause := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: math.MaxInt, Cap: o.MaxBackoff}
	for {
		after, err := try(ctx, s, o, path, request)
		switch {
		case err == nil:
			// A body that breaks off is no reason to send the request a second time.
			_ = proto.Unmarshal(s.Client.Body, answer)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case s.Client.Code != 0 && s.Client.Code/100 != 3 && !temporary(s.Client.Code):
			return err
		}
		s.Retrying(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause.Step() + after):
		}
	}
}

// temporary reports whether a request is sent again after an answer with this status, by the
// specification of OTLP.
func temporary(code int) bool {
	switch code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// try sends a request once. after is how long the receiver asks to wait.
func try(ctx context.Context, s *push.Sender, o *push.Options, path string, request []byte) (after time.Duration, err error) {
	base, query, _ := strings.Cut(o.URL, "?")
	address := strings.TrimSuffix(base, "/") + path
	if query != "" {
		address += "?" + query
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(request))
	if err != nil {
		return 0, fmt.Errorf("make a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	resp, err := s.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return 0, nil
	}
	text, _ := io.ReadAll(resp.Body) // it is in memory
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second, fmt.Errorf("the receiver answers %s: %s", resp.Status, text)
}
