package weirdev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Client sends requests to one weir.
type Client struct {
	base *url.URL
	http *http.Client
	// Advise adds to an error what a person can do about it. If it is nil, nothing is added.
	Advise func(error) error
}

// NewClient returns a client of the weir with the root URL base, which may have a path (of a
// proxy). HOST:PORT is short for http://HOST:PORT. A nil client means http.DefaultClient.
func NewClient(base string, client *http.Client) (*Client, error) {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server address %q is not a URL: write it as http://HOST:PORT", humanize.URL(base))
	}
	client = cmp.Or(client, http.DefaultClient)
	return &Client{base: u, http: client}, nil
}

// Get requests a path below Path and returns the answer. The parts of the path are names;
// Get escapes them. Unless kind is empty, an answer of another kind or version is an error: another server,
// or another version of weir, may have answered. An error that the server itself reports is a *Problem with
// its own words. Other errors begin with what.
func Get[T any](ctx context.Context, c *Client, what string, path []string, query url.Values, kind string) (*T, error) {
	var answer T
	if err := c.ask(ctx, http.MethodGet, what, path, query, nil, kind, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

// Post sends a document, in YAML or JSON, to a path below Path, and returns the answer. Its errors are
// like those of Get.
func Post[T any](ctx context.Context, c *Client, what string, path []string, query url.Values, document []byte, kind string) (*T, error) {
	var answer T
	if err := c.ask(ctx, http.MethodPost, what, path, query, document, kind, &answer); err != nil {
		return nil, err
	}
	return &answer, nil
}

func (c *Client) ask(ctx context.Context, method, what string, path []string, query url.Values, document []byte, kind string, body any) (err error) {
	defer func() {
		if err != nil && c.Advise != nil {
			err = c.Advise(err)
		}
	}()
	u := c.base.JoinPath(Path)
	for _, part := range path {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("ask for %s: nothing can be called %q", what, part)
		}
		u = u.JoinPath(url.PathEscape(part))
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("ask for %s: %w", what, err)
	}
	req.Header.Set("Accept", "application/json")
	if document != nil {
		req.Header.Set("Content-Type", "application/yaml") // JSON is part of YAML
	}
	resp, err := c.http.Do(req) // the transport asks for gzip and decompresses the answer
	if err != nil {
		return fmt.Errorf("ask for %s: %w", what, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return problem(resp)
	}
	if err := decode(resp.Body, kind, body); err != nil {
		return fmt.Errorf("read the answer about %s: %w", what, err)
	}
	return nil
}

// maxAnswer limits an answer in bytes. Those about 110,000 pods take a tenth of it.
const maxAnswer = 1 << 30

// decode reads a document into body. It returns an error if it is not of this kind and of the version of this
// package; an empty kind is any.
func decode(document io.Reader, kind string, body any) error {
	text, err := io.ReadAll(io.LimitReader(document, maxAnswer)) // to its end: the server takes less for a client that gave up
	switch {
	case err != nil:
		return err
	case len(text) == maxAnswer:
		return fmt.Errorf("it is longer than %d bytes: ask for less, such as one namespace", maxAnswer)
	}
	if kind != "" {
		var got struct{ APIVersion, Kind string }
		if err := json.Unmarshal(text, &got); err != nil {
			return err
		}
		if got.Kind != kind || got.APIVersion != APIVersion {
			return fmt.Errorf("got kind %q of %q, want %s of %s", got.Kind, got.APIVersion, kind, APIVersion)
		}
	}
	return json.Unmarshal(text, body)
}
