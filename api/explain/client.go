package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
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

// Pod explains a pod. What the server itself says is wrong is a *Problem, here and
// below.
func (c *Client) Pod(ctx context.Context, ref metric.PodRef) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Namespace: ref.Namespace, Pod: ref.Name})
}

// Container explains a container of a pod.
func (c *Client) Container(ctx context.Context, ref metric.PodRef, name string) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Namespace: ref.Namespace, Pod: ref.Name, Container: name})
}

// Node explains a node.
func (c *Client) Node(ctx context.Context, name metric.NodeName) (*explain.Explanation, error) {
	return c.explain(ctx, Request{Node: name})
}

// Missing reports what is missing in a namespace, or in the cluster if it is
// empty.
func (c *Client) Missing(ctx context.Context, namespace metric.Namespace) (*explain.Report, error) {
	var r Report
	if err := c.get(ctx, Request{Missing: true, Namespace: namespace}, &r); err != nil {
		return nil, err
	}
	return &r.Report, nil
}

func (c *Client) explain(ctx context.Context, r Request) (*explain.Explanation, error) {
	var e Explanation
	if err := c.get(ctx, r, &e); err != nil {
		return nil, err
	}
	return &e.Explanation, nil
}

// get asks for r and reads the answer into body.
func (c *Client) get(ctx context.Context, r Request, body any) error {
	path, query := r.target()
	u := c.base.JoinPath(Path)
	for _, part := range path {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("ask for %v: nothing can be called %q", r, part)
		}
		u = u.JoinPath(url.PathEscape(part))
	}
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("ask for %v: %w", r, err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask for %v: %w", r, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return problem(resp)
	}
	if err := json.NewDecoder(resp.Body).Decode(body); err != nil {
		return fmt.Errorf("read the answer about %v: %w", r, err)
	}
	return nil
}
