package promclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxAnswer is the default bound of an answer, in bytes. A query for an
// autoscaler gives a handful of series.
const MaxAnswer = 4 << 20

// Options says whom to ask and how.
type Options struct {
	// URL is the server's; the API's path is added to it. Required.
	URL string
	// CAFile holds the certificates to trust, read once; the system's if empty.
	CAFile string
	// BearerTokenFile holds a token, read for each query.
	BearerTokenFile string
	// Username and PasswordFile are sent as basic authentication; the file is read
	// for each query.
	Username, PasswordFile string
	Headers                map[string]string
	// MaxAnswer bounds an answer's size in bytes; 0 means the constant MaxAnswer.
	MaxAnswer int64
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	options Options
	url     string
	http    *http.Client
}

// New returns a client. The error is about the URL or the certificates.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("parse address: %w", err)
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = MaxAnswer
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     time.Minute,
		ForceAttemptHTTP2:   true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read caFile: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read caFile: %s holds no PEM certificate", o.CAFile)
		}
	}
	return &Client{
		options: o,
		url:     u.JoinPath("api/v1/query").String(),
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close ends the connections that no query uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Series is one value of an answer.
type Series struct {
	// Labels are the series', its name included; empty for a scalar.
	Labels map[string]string
	Value  float64
	Time   time.Time
}

// Answer is what a query gave.
type Answer struct {
	Series []Series
	// Warnings are what the server wants said beside it.
	Warnings []string
}

// Error is an answer that says no.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Kind is what the server calls the error: "bad_data", "execution",
	// "timeout"; empty if it does not speak as Prometheus does.
	Kind string
	// Text is what the server wrote, cut short if it wrote much.
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

// Query returns what query gives at a time. An *Error is the server's refusal;
// other errors are about the way to it and back.
func (c *Client) Query(ctx context.Context, query string, at time.Time) (*Answer, error) {
	form := url.Values{"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	if deadline, ok := ctx.Deadline(); ok {
		// Let the server give up when nobody waits any more.
		form.Set("timeout", strconv.FormatFloat(max(time.Until(deadline).Seconds(), 0.001), 'f', 3, 64))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := c.authorize(req); err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.options.MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read Prometheus' answer: %w", err)
	case int64(len(body)) > c.options.MaxAnswer:
		return nil, fmt.Errorf("read Prometheus' answer: it has more than %d bytes: make the query give fewer series", c.options.MaxAnswer)
	}
	if resp.StatusCode/100 == 3 {
		return nil, &Error{Status: resp.StatusCode, Text: fmt.Sprintf("it redirects to %s: put that address in url", resp.Header.Get("Location"))}
	}
	return decode(resp.StatusCode, body)
}

// authorize adds the credentials, read anew for they are renewed.
func (c *Client) authorize(req *http.Request) error {
	for name, value := range c.options.Headers {
		req.Header.Set(name, value)
	}
	switch {
	case c.options.BearerTokenFile != "":
		token, err := os.ReadFile(c.options.BearerTokenFile)
		if err != nil {
			return fmt.Errorf("read bearerTokenFile: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	case c.options.Username != "":
		password, err := os.ReadFile(c.options.PasswordFile)
		if err != nil {
			return fmt.Errorf("read passwordFile: %w", err)
		}
		req.SetBasicAuth(c.options.Username, strings.TrimRight(string(password), "\r\n"))
	}
	return nil
}

// answer is the envelope of Prometheus' API.
type answer struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// point is a time in seconds and a value as text.
type point struct {
	at    float64
	value float64
}

// UnmarshalJSON reads [1700000000.5, "12.5"].
func (p *point) UnmarshalJSON(data []byte) error {
	var at float64
	var text string
	pair := [...]any{&at, &text}
	all := pair[:]
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("read a value: %w", err)
	}
	if len(all) != 2 {
		return fmt.Errorf("read a value: %s is not a time and a number", data)
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("read a value: %w", err)
	}
	*p = point{at, value}
	return nil
}

func (p point) series(labels map[string]string) Series {
	return Series{Labels: labels, Value: p.value, Time: time.UnixMilli(int64(p.at * 1000))}
}

// decode reads an answer.
func decode(status int, body []byte) (*Answer, error) {
	var a answer
	err := json.Unmarshal(body, &a)
	if status/100 != 2 || err == nil && a.Status == "error" {
		if err != nil || a.Error == "" {
			return nil, &Error{Status: status, Text: short(string(body))}
		}
		return nil, &Error{Status: status, Kind: a.ErrorType, Text: short(a.Error)}
	}
	if err != nil {
		return nil, fmt.Errorf("read Prometheus' answer: %w: is it the address of a Prometheus?", err)
	}
	if a.Status != "success" {
		return nil, errors.New("read Prometheus' answer: it has no status: is it the address of a Prometheus?")
	}
	to := &Answer{Warnings: a.Warnings}
	switch a.Data.Type {
	case "scalar":
		var p *point
		if err := json.Unmarshal(a.Data.Result, &p); err != nil {
			return nil, fmt.Errorf("read Prometheus' answer: %w", err)
		}
		if p == nil {
			return nil, errors.New("read Prometheus' answer: a scalar without a value")
		}
		to.Series = []Series{p.series(nil)}
	case "vector":
		var vector []struct {
			Metric map[string]string `json:"metric"`
			Value  *point            `json:"value"`
		}
		if err := json.Unmarshal(a.Data.Result, &vector); err != nil {
			return nil, fmt.Errorf("read Prometheus' answer: %w", err)
		}
		for _, s := range vector {
			if s.Value == nil {
				return nil, fmt.Errorf("the query gives a histogram where it should give a number: put histogram_quantile(), histogram_count() or the like around it")
			}
			to.Series = append(to.Series, s.Value.series(s.Metric))
		}
	default:
		return nil, fmt.Errorf("the query gives a %q and not a number or a vector", a.Data.Type)
	}
	return to, nil
}

// short returns s in one line of 300 bytes at most.
func short(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) <= 300 {
		return s
	}
	s = s[:300]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}
