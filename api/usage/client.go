package usage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// Client reads the API of one weir.
type Client struct {
	base *url.URL
	http *http.Client
}

// NewClient returns a client of the weir whose root lies at base, which may
// have a path (a proxy's). A nil client means http.DefaultClient.
func NewClient(base string, client *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("server address %q is no URL: write it as http://HOST:PORT", base)
	}
	if client == nil {
		client = http.DefaultClient
	}
	return &Client{base: u, http: client}, nil
}

// Server returns the address the client asks.
func (c *Client) Server() string { return c.base.Redacted() }

// List asks for a list. What the server itself says is wrong is a *Problem. One
// namespace is asked for by its own path, so that the right to that namespace is
// enough.
func (c *Client) List(ctx context.Context, r Resource, q Query) (*List, error) {
	u := c.base.JoinPath(Path, string(r))
	if r.Namespaced() && isLabel(q.Namespace) {
		u = c.base.JoinPath(Path, "namespaces", q.Namespace, string(r))
		q.Namespace = ""
	}
	u.RawQuery = q.Values().Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", r, err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req) // the transport asks for gzip and undoes it
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", r, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, problem(resp)
	}
	var list List
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("read %s: %w", r, err)
	}
	if list.Resource != r {
		return nil, fmt.Errorf("read %s: the answer is not weir's", r)
	}
	return &list, nil
}
