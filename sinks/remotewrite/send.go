package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/exp/api/remote"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/sinks/push"
)

// Sink sends batches to a receiver. Write and Forget may be called by several goroutines and
// never wait for the receiver; Run sends.
type Sink struct {
	*push.Sink[labels]
	o   Options
	api *remote.API
	// modern says that the receiver accepts version 2.0, old that it accepts only 1.0. Only Run
	// uses these.
	modern, old bool
}

// New returns a Sink. The error is about the receiver's address, certificates or credentials.
func New(o Options) (*Sink, error) {
	o.NotFound = "is it the path of remote write? A Prometheus takes it at /api/v1/write, if it runs with --web.enable-remote-write-receiver"
	o.Options = o.WithDefaults()
	sink, err := push.New(o.Options, "remotewrite", newRequest(o.ExternalLabels))
	if err != nil {
		return nil, err
	}
	s := &Sink{Sink: sink, o: o}
	s.api, err = remote.NewAPI(o.URL, remote.WithAPIHTTPClient(&sink.Client.Client), remote.WithAPIPath(""),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: 100 * time.Millisecond, Max: o.MaxBackoff}))
	if err != nil {
		return nil, fmt.Errorf("reach the receiver: %w", err)
	}
	sink.SetSend(s.send)
	return s, nil
}

// send sends one request until the receiver accepts or rejects it.
func (s *Sink) send(ctx context.Context, request []byte) (rejected int, err error) {
	message, err := snappy.Decode(nil, request)
	if err != nil {
		return 0, fmt.Errorf("unpack a request: %w", err)
	}
	return 0, s.deliver(ctx, message)
}

func (s *Sink) deliver(ctx context.Context, message []byte) error {
	if s.old {
		return s.deliverOld(ctx, message)
	}
	err := s.try(ctx, remote.WriteV2MessageType, message)
	s.modern = s.modern || err == nil
	if s.modern || !s.mayBeOld() {
		return err
	}
	if e := s.deliverOld(ctx, message); e != nil {
		return errors.Join(err, e)
	}
	s.old = true
	s.o.Logger.Info("the receiver supports remote write 1.0 only", zap.NamedError("to 2.0 it says", err))
	return nil
}

func (s *Sink) deliverOld(ctx context.Context, message []byte) error {
	old, err := downgrade(message)
	if err != nil {
		return fmt.Errorf("make a request of version 1.0: %w", err)
	}
	return s.try(ctx, remote.WriteV1MessageType, old)
}

// try sends a message. The library retries temporary errors until ctx ends.
func (s *Sink) try(ctx context.Context, kind remote.WriteMessageType, message []byte) error {
	_, err := s.api.Write(ctx, kind, encoded(message), remote.WithWriteRetryCallback(s.Retrying))
	return err
}

// mayBeOld reports whether the last answer may be that of a receiver without version 2.0: it
// says so, it takes the message for an invalid one of version 1.0, or it accepts the message
// without reporting how many samples it stored.
func (s *Sink) mayBeOld() bool {
	code := s.Client.Code
	return code == http.StatusUnsupportedMediaType || code == http.StatusBadRequest || code/100 == 2
}

// encoded is an encoded message, with the methods that the library calls.
type encoded []byte

// SizeVT returns the message's size in bytes.
func (e encoded) SizeVT() int { return len(e) }

// MarshalToSizedBufferVT copies the message.
func (e encoded) MarshalToSizedBufferVT(b []byte) (int, error) { return copy(b, e), nil }
