package push_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sinks/push"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A receiver sets the wait between two tries to at most a minute, and never makes weir try without
// a wait.
func TestRetryAfterIsBounded(t *testing.T) {
	for _, header := range []string{"1000000", "9223372036854775807", "-1000000", "Mon, 02 Jan 2006 15:04:05 GMT", "Fri, 02 Jan 2099 15:04:05 GMT", "soon"} {
		synctest.Test(t, func(t *testing.T) {
			s, err := push.NewSender(push.Options{URL: "http://receiver/write", HTTP: config.DefaultHTTPClientConfig}, "test", "samples")
			if err != nil {
				t.Fatal(err)
			}
			began, calls := time.Now(), 0
			s.Transport = transport(func(*http.Request) (*http.Response, error) {
				calls++
				resp := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {header}}, Body: io.NopCloser(strings.NewReader(""))}
				if calls > 20 {
					resp.StatusCode = http.StatusOK
				}
				return resp, nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			answer, err := s.Post(ctx, &push.Request{IsTemporary: func(code int) bool { return code == http.StatusServiceUnavailable }})
			if err != nil || answer.Code != http.StatusOK {
				t.Errorf("Retry-After: %s: the last answer is %d with error %v, want 200 and none", header, answer.Code, err)
			}
			if took := time.Since(began); calls != 21 || took < 10*time.Second || took > 21*(time.Minute+8*time.Second) {
				t.Errorf("Retry-After: %s: %d tries took %v, want 21 in 10 s to 24 min", header, calls, took)
			}
		})
	}
}

// A receiver that rejects every request is one error a minute, with the reason and the number of
// samples that are lost.
func TestRejectsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.ErrorLevel)
		s, err := push.NewSender(push.Options{URL: "http://user:secret@receiver/write", HTTP: config.DefaultHTTPClientConfig, Logger: zap.New(core)}, "test", "samples")
		if err != nil {
			t.Fatal(err)
		}
		var accepts atomic.Bool
		s.SetSend(func(context.Context, []byte) (int, error) {
			if accepts.Load() {
				return 0, nil
			}
			return 0, errors.New("out of bounds")
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx, func(time.Duration) {}) }()
		const requests, items = 100, 3
		for range requests { // for 200 s
			s.Put([]byte("request"), items, time.Now())
			time.Sleep(2 * time.Second)
		}
		if since, err := s.Trouble(); time.Since(since) != requests*2*time.Second || err == nil || err.Error() != "out of bounds" {
			t.Errorf("in trouble since %v with error %v, want since the first request, because it is out of bounds", since, err)
		}
		accepts.Store(true)
		s.Put([]byte("request"), items, time.Now())
		synctest.Wait()
		if since, err := s.Trouble(); !since.IsZero() || err != nil {
			t.Errorf("after an accepted request in trouble since %v with error %v, want none", since, err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		var got []int64
		for _, line := range lines.All() {
			fields := line.ContextMap()
			got = append(got, fields["samples"].(int64))
			if fields["error"] != "out of bounds" || fields["url"] != "http://xxxxx@receiver/write" {
				t.Errorf("logged %v, want the reason and the URL without its secrets", fields)
			}
		}
		if want := []int64{3, 90, 90, 90}; !slices.Equal(got, want) {
			t.Errorf("messages of %v lost samples, want %v", got, want)
		}
	})
}

// noted is a Format that notes whether Encode may use the memory of a request that was sent.
type noted struct {
	counted
	reused []bool
}

func (n *noted) Encode(to []byte) []byte {
	n.reused = append(n.reused, cap(to) > 0)
	return append(to, "request"...)
}

// The memory of a request that was sent is used again, unless somebody may still read it: the transport, which may
// answer before it closes the body, or the write-ahead log.
func TestMemoryOfSentRequestIsReused(t *testing.T) {
	for name, test := range map[string]struct {
		closes, wal, reused bool
	}{
		"sent":                      {closes: true, reused: true},
		"the transport still reads": {},
		"the log still reads":       {closes: true, wal: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := push.Options{URL: "http://receiver/write", HTTP: config.DefaultHTTPClientConfig}
			if test.wal {
				o.WAL = t.TempDir()
			}
			synctest.Test(t, func(t *testing.T) {
				var format noted
				s, err := push.New(o, "test", &format)
				if err != nil {
					t.Fatal(err)
				}
				s.Transport = transport(func(r *http.Request) (*http.Response, error) {
					if got, err := io.ReadAll(r.Body); string(got) != "request" || err != nil || r.ContentLength != int64(len(got)) {
						t.Errorf("sent %q of %d bytes, and %v", got, r.ContentLength, err)
					}
					if test.closes {
						_ = r.Body.Close()
					}
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
				})
				s.SetSend(func(ctx context.Context, request []byte) (int, error) {
					_, err := s.Post(ctx, &push.Request{Body: request})
					return 0, err
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- s.Run(ctx) }()
				for range 2 {
					b := &metric.Batch{Source: "kubelet", Node: "n1", Ended: time.Now()}
					sample := b.Add(metric.Entity{Kind: metric.Node, Node: "n1"})
					sample.Values.Set(metric.MemoryWorkingSet, 1)
					sample.Times[metric.Memory], sample.Reasons[metric.Memory] = b.Ended.UnixNano(), metric.Measured
					if err := s.Write(ctx, b); err != nil {
						t.Error(err)
					}
					s.Flush(0)
					time.Sleep(time.Second) // of the bubble's clock
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if want := []bool{false, test.reused}; !slices.Equal(format.reused, want) {
					t.Errorf("memory was reused in requests: %v, want %v", format.reused, want)
				}
			})
		})
	}
}
