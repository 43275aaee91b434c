package adapters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/common/config"
	"google.golang.org/grpc"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"

	"github.com/weir-metrics/weir/api/metricsgroup"
	"github.com/weir-metrics/weir/internal/humanize"
)

// The most that one adapter may take.
const (
	maxAnswer   = 4 << 20 // bytes
	maxItems    = 5_000   // values of an answer, metrics of a list
	maxRequests = 16      // at once
	maxMessage  = 500     // bytes of an error's text
)

// client asks one adapter.
type client struct {
	Adapter
	slots chan struct{}
	telemetry

	mu struct {
		sync.Mutex
		http   *http.Client     // nil until caFile can be read
		scaler *grpc.ClientConn // likewise, for an external scaler
	}
}

// httpClient returns the HTTP client. A caFile that is missing is an error of this adapter only, until
// it is there.
func (c *client) httpClient() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.http != nil {
		return c.mu.http, nil
	}
	o := config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}, EnableHTTP2: true} // redirects are not followed
	if c.BearerTokenFile != "" {
		o.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: c.BearerTokenFile}
	}
	h, err := config.NewClientFromConfig(o, c.Name)
	if err != nil {
		return nil, metricsgroup.Unavailable("adapter %s cannot be asked: %v", c.Name, err)
	}
	c.mu.http = h
	return h, nil
}

// close closes connections that are not in use. A later request opens new ones.
func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.http != nil {
		c.mu.http.CloseIdleConnections()
	}
	if c.mu.scaler != nil {
		_ = c.mu.scaler.Close() // it fails only if it is closed already
		c.mu.scaler = nil
	}
}

// get asks for a path below /apis and decodes the answer to the library's internal type. Errors have
// a status for the caller.
func (c *client) get(ctx context.Context, group schema.GroupVersion, query url.Values, path ...string) (runtime.Object, error) {
	body, err := c.fetch(ctx, query, append([]string{"apis", group.Group, group.Version}, path...)...)
	if err != nil {
		return nil, err
	}
	internal := schema.GroupVersion{Group: group.Group, Version: runtime.APIVersionInternal}
	object, err := runtime.Decode(apiserver.Codecs.UniversalDecoder(internal), body)
	if err != nil {
		return nil, c.unusable("its answer cannot be read: %s", humanize.Excerpt(err.Error(), maxMessage))
	}
	return object, nil
}

// bounded calls ask within the bounds of the adapter, and counts its result.
func (c *client) bounded(caller context.Context, ask func(context.Context) error) (err error) {
	if caller.Err() != nil {
		return c.requestEnded("was asked")
	}
	began, result := time.Now(), "ok"
	defer func() {
		if err != nil {
			result = "error"
		}
		c.requests.WithLabelValues(c.Name, result).Inc()
		c.duration.WithLabelValues(c.Name).Observe(time.Since(began).Seconds())
	}()
	ctx, cancel := context.WithTimeout(caller, c.Timeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		if caller.Err() != nil {
			return c.requestEnded("was asked")
		}
		return metricsgroup.Unavailable("adapter %s is slow: %d other requests to it did not end within %v", c.Name, maxRequests, c.Timeout)
	}
	err = ask(ctx)
	// A gRPC server has the deadline, too, and its answer may be here a moment before it.
	if deadline, ok := caller.Deadline(); err != nil && (caller.Err() != nil || ok && time.Until(deadline) < 50*time.Millisecond) {
		return c.requestEnded("answered")
	}
	return err
}

// requestEnded returns the error for a caller that ended before something happened. The adapter need not be
// slow: the caller may have had less time than the adapter's timeout.
func (c *client) requestEnded(before string) error {
	return metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "the request ended before adapter %s %s", c.Name, before)
}

// fetch returns the body of a successful answer.
func (c *client) fetch(ctx context.Context, query url.Values, path ...string) (body []byte, err error) {
	err = c.bounded(ctx, func(ctx context.Context) error {
		body, err = c.fetchNow(ctx, query, path)
		return err
	})
	return body, err
}

// fetchNow is fetch without bounds of time and number.
func (c *client) fetchNow(ctx context.Context, query url.Values, path []string) (body []byte, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, fmt.Errorf("adapter %s: %w", c.Name, err)
	}
	for i, segment := range path {
		if segment == "" || segment == "." || segment == ".." { // JoinPath would ask for another path
			return nil, metricsgroup.BadRequest("adapter %s: %q cannot be a part of a path", c.Name, segment)
		}
		path[i] = url.PathEscape(segment)
	}
	u = u.JoinPath(path...)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("adapter %s: %w", c.Name, err)
	}
	request.Header.Set("Accept", "application/json")
	h, err := c.httpClient()
	if err != nil {
		return nil, err
	}
	response, err := h.Do(request)
	if err != nil {
		return nil, c.unanswered(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.unanswered(err)
	case len(body) > maxAnswer:
		return nil, c.unusable("its answer has more than %d bytes", maxAnswer)
	case response.StatusCode != http.StatusOK:
		return nil, c.refusal(response, body)
	}
	return body, nil
}

// unanswered returns the error for an adapter that could not be reached or is too slow.
func (c *client) unanswered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return metricsgroup.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "adapter %s did not answer within %v", c.Name, c.Timeout)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // its text has the URL
	}
	return metricsgroup.Unavailable("adapter %s cannot be reached: %v", c.Name, err)
}

// refusal returns the error for an answer with another status than 200.
func (c *client) refusal(response *http.Response, body []byte) error {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		status = metav1.Status{Message: string(body)}
	}
	text := humanize.Excerpt(humanize.Printable(status.Message), maxMessage)
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return c.unusable("it answered %d to the account whose token bearerTokenFile has: %s", code, text)
	case code/100 == 3:
		return c.unusable("it redirects to %s: put that address in url", humanize.Excerpt(humanize.URL(response.Header.Get("Location")), maxMessage))
	case code < 400:
		return c.unusable("it answered %d", code)
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: status.Reason, Message: fmt.Sprintf("adapter %s: %s", c.Name, text),
		}}
	}
}

// unusable returns the error for an answer that cannot be used.
func (c *client) unusable(format string, args ...any) error {
	return metricsgroup.Error(http.StatusBadGateway, metav1.StatusReasonInternalError, "adapter %s: %s", c.Name, fmt.Sprintf(format, args...))
}
