package push

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-metrics/weir/internal/humanize"
)

// maxAnswer is how many bytes of an answer are read, and maxText how many of them an error quotes. An
// answer of OTLP counts only if it is whole, and has a text of any length.
const (
	maxAnswer = 64 << 10
	maxText   = 300
)

// maxRetryAfter is the longest wait before the next try that a receiver can ask for.
const maxRetryAfter = time.Minute

// Client is an HTTP client for one receiver. It passes on only what is bounded of an answer: its
// body as a short text, and Retry-After up to a minute. A redirect is an error, after which the
// sender tries again: the samples wait until the URL is right. So credentials and headers reach the
// given receiver only. Requests are sent one at a time.
type Client struct {
	http.Client
	// Code is the status code of the last answer; 0 if there was none. Body is the beginning of
	// its body, as it came.
	Code int
	Body []byte
	// Next makes the connections.
	Next http.RoundTripper
}

// newClient returns a Client. The error is about certificates or credentials.
func newClient(o *Options, name string) (*Client, error) {
	client, err := config.NewClientFromConfig(o.HTTP, name)
	if err != nil {
		return nil, fmt.Errorf("reach the receiver: %w", err)
	}
	c := &Client{Client: *client, Next: client.Transport}
	c.Transport, c.Timeout = c, o.Timeout
	return c, nil
}

// RoundTrip satisfies http.RoundTripper.
func (c *Client) RoundTrip(r *http.Request) (*http.Response, error) {
	c.Code, c.Body = 0, nil
	resp, err := c.Next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	c.Code = resp.StatusCode
	// An answer that breaks off has its status all the same.
	c.Body, _ = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	resp.Body.Close()
	if resp.StatusCode/100 == 3 {
		return nil, fmt.Errorf("the receiver redirects to %s: put that address in --sink", humanize.Excerpt(humanize.URL(resp.Header.Get("Location")), maxText))
	}
	resp.Body = io.NopCloser(strings.NewReader(humanize.Excerpt(string(c.Body), maxText)))
	resp.Status = fmt.Sprint(resp.StatusCode, " ", http.StatusText(resp.StatusCode))
	if after := resp.Header.Get("Retry-After"); after != "" {
		resp.Header.Set("Retry-After", strconv.Itoa(retryAfter(after, time.Now())))
	}
	return resp, nil
}

// CloseIdleConnections closes the connections to the receiver.
func (c *Client) CloseIdleConnections() {
	if t, ok := c.Next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// retryAfter returns the seconds of a Retry-After header, from 0 to maxRetryAfter.
func retryAfter(header string, now time.Time) int {
	seconds, err := strconv.ParseInt(header, 10, 64)
	if at, e := http.ParseTime(header); e == nil {
		seconds, err = at.Unix()-now.Unix(), nil
	}
	if err != nil {
		return 0
	}
	return int(min(max(seconds, 0), int64(maxRetryAfter.Seconds())))
}
