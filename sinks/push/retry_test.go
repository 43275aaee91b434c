package push_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"

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
