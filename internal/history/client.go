package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"

	"github.com/weir-metrics/weir/internal/humanize"
)

// MaxAnswer is the default limit on the size of an answer, in bytes. A query for an autoscaler
// returns only a few series.
const MaxAnswer = 4 << 20

// Options has the server and its credentials.
type Options struct {
	// URL is the server's URL; the client adds the path of the API. Required.
	URL string
	// CAFile has the CA certificates to trust. It is read for each query. If it is empty, the
	// system's certificates are used.
	CAFile string
	// CertFile and KeyFile have the certificate that is shown to the server. They are read for each
	// connection.
	CertFile, KeyFile string
	// BearerTokenFile has a token. It is read for each query.
	BearerTokenFile string
	// Username and the password in PasswordFile are sent as basic authentication. The file is read for
	// each query.
	Username, PasswordFile string
	Headers                map[string]string
	// MaxAnswer bounds the size of an answer in bytes; 0 means the constant MaxAnswer.
	MaxAnswer int64
	// Progress, if not nil, is called before each request of Range with the request's number and the
	// number of requests.
	Progress func(query string, request, requests int)
}

// Client sends queries to one server. It is safe for concurrent use.
type Client struct {
	options Options
	url     *url.URL // the URL of the API
	http    *http.Client
}

// New returns a client. It fails if the URL or the certificates are not valid.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q is not the address of a server: write http://HOST:PORT", humanize.URL(o.URL))
	}
	o.MaxAnswer = cmp.Or(o.MaxAnswer, MaxAnswer)
	c := config.HTTPClientConfig{
		TLSConfig: config.TLSConfig{CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile}, ProxyConfig: config.ProxyConfig{ProxyFromEnvironment: true}, EnableHTTP2: true,
		HTTPHeaders: &config.Headers{Headers: map[string]config.Header{}},
	}
	for name, value := range o.Headers {
		c.HTTPHeaders.Headers[name] = config.Header{Values: []string{value}}
	}
	switch {
	case o.BearerTokenFile != "":
		c.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: o.BearerTokenFile}
	case o.Username != "":
		c.BasicAuth = &config.BasicAuth{Username: o.Username, PasswordFile: o.PasswordFile}
	}
	client, err := config.NewClientFromConfig(c, "history")
	if err != nil {
		return nil, fmt.Errorf("read caFile: %w", err)
	}
	return &Client{options: o, url: u.JoinPath("api/v1"), http: client}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// InstantValue is one series of an answer at one time.
type InstantValue struct {
	// Labels are the labels of the series, with its name; empty for a scalar.
	Labels map[string]string
	Value  float64
	Time   time.Time
}

// Answer is the result of a query at one time.
type Answer struct {
	Series []InstantValue
	// Warnings are the warnings of the server.
	Warnings []string
}

// Error is an error that the server returns.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Kind is Prometheus' type of the error: "bad_data", "execution", "timeout". It is empty if the
	// answer does not come from Prometheus.
	Kind string
	// Text is the server's message, truncated.
	Text string
}

// Error returns "Prometheus answered 422: execution: TEXT".
func (e *Error) Error() string {
	s := fmt.Sprintf("Prometheus answered %d", e.Status)
	if e.Kind != "" {
		s += ": " + e.Kind
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Query returns the result of a query at a time. An *Error comes from the server; other errors
// concern the connection.
func (c *Client) Query(ctx context.Context, query string, at time.Time) (*Answer, error) {
	status, body, err := c.post(ctx, "query", url.Values{"query": {query}, "time": {seconds(at)}})
	if err != nil {
		return nil, err
	}
	return decode(status, body)
}

// seconds formats a time for the API.
func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// post sends a request and returns the status and the body of the answer.
func (c *Client) post(ctx context.Context, path string, form url.Values) (status int, body []byte, err error) {
	if deadline, ok := ctx.Deadline(); ok {
		// The server stops when the caller no longer waits.
		form.Set("timeout", strconv.FormatFloat(max(time.Until(deadline).Seconds(), 0.001), 'f', 3, 64))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.JoinPath(path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.http.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			failed.URL = humanize.URL(failed.URL)
		}
		return 0, nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, c.options.MaxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("read Prometheus' answer: %w", err)
	case int64(len(body)) > c.options.MaxAnswer:
		return 0, nil, fmt.Errorf("read Prometheus' answer: it has more than %d bytes: change the query to return fewer series", c.options.MaxAnswer)
	}
	if resp.StatusCode/100 == 3 {
		return 0, nil, &Error{Status: resp.StatusCode, Text: fmt.Sprintf("it redirects to %s: put that address in url", humanize.Excerpt(humanize.URL(resp.Header.Get("Location")), maxText))}
	}
	return resp.StatusCode, body, nil
}
