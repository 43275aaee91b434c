package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/sinks/push"
)

// Sink sends batches to a receiver. Write and Forget may be called by several goroutines and
// never wait for the receiver; Run sends.
type Sink struct {
	*push.Sink[struct{}]
	o Options
	// modern means that the receiver accepts version 2.0, old that it accepts only 1.0. Only Run
	// uses these.
	modern, old bool
}

// New returns a Sink. The error is about the receiver's certificates or credentials.
func New(o Options) (*Sink, error) {
	o.NotFound = "is it the path of remote write? A Prometheus takes it at /api/v1/write, if it runs with --web.enable-remote-write-receiver"
	o.Options = o.WithDefaults()
	sink, err := push.New(o.Options, "remotewrite", newRequest(o.ExternalLabels))
	if err != nil {
		return nil, err
	}
	s := &Sink{Sink: sink, o: o}
	sink.SetSend(s.send)
	return s, nil
}

// send sends one request of version 2.0, or of 1.0 if the receiver supports no other.
func (s *Sink) send(ctx context.Context, request []byte) (rejected int, err error) {
	if s.old {
		return 0, s.postOld(ctx, request)
	}
	answer, err := s.post(ctx, "2.0.0", "application/x-protobuf;proto=io.prometheus.write.v2.Request", request)
	if err == nil && answer.Header.Get("X-Prometheus-Remote-Write-Samples-Written") == "" {
		err = errors.New("the receiver answers 2xx without the number of samples that it stored, which version 2.0 demands")
	}
	s.modern = s.modern || err == nil
	if s.modern || !mayBeOld(answer.Code) {
		return 0, err
	}
	if e := s.postOld(ctx, request); e != nil {
		return 0, errors.Join(err, e)
	}
	s.old = true
	s.o.Logger.Info("the receiver supports remote write 1.0 only", zap.NamedError("answerTo20", err))
	return 0, nil
}

// postOld sends a request of version 2.0 as one of 1.0.
func (s *Sink) postOld(ctx context.Context, request []byte) error {
	message, err := snappy.Decode(nil, request)
	if err != nil {
		return fmt.Errorf("unpack a request: %w", err)
	}
	old, err := downgrade(message)
	if err != nil {
		return fmt.Errorf("make a request of version 1.0: %w", err)
	}
	_, err = s.post(ctx, "0.1.0", "application/x-protobuf", snappy.Encode(nil, old))
	return err
}

func (s *Sink) post(ctx context.Context, version, contentType string, body []byte) (push.Answer, error) {
	return s.Post(ctx, &push.Request{
		Body: body, IsTemporary: func(code int) bool { return code == http.StatusTooManyRequests || code/100 == 5 },
		Header: map[string]string{
			"Content-Type": contentType, "Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": version,
		},
	})
}

// mayBeOld reports whether an answer with this status may be that of a receiver without version 2.0:
// it rejects the message, takes it for an invalid one of version 1.0, or accepts it without the number
// of samples that it stored.
func mayBeOld(code int) bool {
	return code == http.StatusUnsupportedMediaType || code == http.StatusBadRequest || code/100 == 2
}
