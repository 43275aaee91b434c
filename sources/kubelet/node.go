package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/statscontainer"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
)

// parser is what all formats' parsers are.
type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

// view is one endpoint of one node.
type view struct {
	path, query string
	body        string // of a POST
	clock       time.Duration
	parser      parser
	url         *url.URL
}

// Node reads one kubelet. It is a source for the manager; and if its endpoint is
// Resource it can testify.
type Node struct {
	target  Target
	scraper *Scraper
	view    *view
}

// Testifier is a Node whose endpoint names neither UIDs nor IDs, and which has
// another endpoint that does.
type Testifier struct{ *Node }

// Source is what Open returns: a *Node, or a Testifier.
type Source interface {
	Read(ctx context.Context, b *metric.Batch) error
	Close() error
}

// Open returns the source for a target. It does no I/O.
func (s *Scraper) Open(t Target) Source {
	n := &Node{target: t, scraper: s, view: viewOf(s.opts.Endpoint)}
	if t.Path != "" {
		n.view.path = t.Path
	}
	n.view.url = n.url(n.view)
	if s.opts.Endpoint == Resource {
		return Testifier{n}
	}
	return n
}

// viewOf returns the view of an endpoint, with a parser of its own.
func viewOf(e Endpoint) *view {
	switch e {
	case Summary:
		return &view{path: "/stats/summary", clock: summary.Clock, parser: summary.New()}
	case CAdvisor:
		return &view{path: "/metrics/cadvisor", clock: cadvisor.Clock, parser: cadvisor.New()}
	case Container:
		return &view{path: "/stats/container/", body: statscontainer.Query, clock: statscontainer.Clock, parser: statscontainer.New()}
	default:
		return &view{path: "/metrics/resource", clock: resource.Clock, parser: resource.New()}
	}
}

func (n *Node) url(v *view) *url.URL {
	return &url.URL{Scheme: n.scraper.opts.Scheme, Host: n.target.Address, Path: v.path, RawQuery: v.query}
}

// Read fills b with one read of the node's endpoint. Its error is a
// *metric.ReadError.
func (n *Node) Read(ctx context.Context, b *metric.Batch) error {
	return n.read(ctx, n.view, b)
}

// Testify fills b with the CPU and memory that /stats/summary reports, which
// names the UIDs of pods. It is asked seldom, so nothing is remembered for it.
func (t Testifier) Testify(ctx context.Context, b *metric.Batch) error {
	v := viewOf(Summary)
	v.query = "only_cpu_and_memory=true"
	v.url = t.url(v)
	return t.read(ctx, v, b)
}

// Close does nothing: connections are the Scraper's.
func (n *Node) Close() error { return nil }

// read reads a view of the node into b.
func (n *Node) read(ctx context.Context, v *view, b *metric.Batch) error {
	b.Clock = v.clock
	b.Began = time.Now()
	err := n.tryRead(ctx, v, b)
	if b.Ended.Before(b.Began) {
		b.Ended = time.Now()
	}
	return err
}

func (n *Node) tryRead(ctx context.Context, v *view, b *metric.Batch) error {
	s := n.scraper
	if n.target.Err != nil {
		return n.target.Err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if err := s.enter(ctx); err != nil {
		return &metric.ReadError{Reason: metric.NodeTimeout, Err: err}
	}
	defer s.leave()
	buf := s.buffers.Get().(*buffer)
	defer s.putBack(buf)

	b.Began = time.Now()
	err := n.fetch(ctx, v, buf)
	b.Ended = time.Now()
	b.Bytes = len(buf.bytes)
	if err != nil {
		return err
	}
	b.NodeTime = buf.date
	err = v.parser.Parse(buf.bytes, s.request(&n.target, b.Began, b.Ended), b)
	var read *metric.ReadError
	if errors.As(err, &read) {
		read.Err = fmt.Errorf("parse %s: %w", v.path, read.Err)
	}
	return err
}

// fetch gets the payload into buf.
func (n *Node) fetch(ctx context.Context, v *view, buf *buffer) error {
	buf.bytes = buf.bytes[:0]
	req := (&http.Request{
		Method: http.MethodGet, URL: v.url, Host: v.url.Host, Header: make(http.Header, 3),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if v.body != "" {
		var err error
		if req, err = http.NewRequestWithContext(ctx, http.MethodPost, v.url.String(), strings.NewReader(v.body)); err != nil {
			return fail(metric.NodeBadPayload, "make request", err)
		}
		req.Header.Set("Content-Type", "application/json")
		// It only reads: net/http may send it again on a new connection. The
		// header itself is not sent.
		req.Header["Idempotency-Key"] = nil
	}
	if !n.scraper.opts.NoGzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if err := n.scraper.authorize(req); err != nil {
		return &metric.ReadError{Reason: metric.NodeUnauthorized, Err: err}
	}
	resp, err := n.scraper.client.Do(req)
	if err != nil {
		return fail(classify(err), "read "+v.path, unwrapURL(err))
	}
	defer resp.Body.Close()
	if err := checkIdentity(resp.TLS, &n.target); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return status(resp, v.path)
	}
	buf.date = 0
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && date.Year() >= 1970 && date.Year() < 2262 {
		buf.date = date.UnixNano()
	}
	err = buf.fill(resp, n.scraper.opts.MaxBytes)
	if err == nil {
		// A server that ends its answer because we hang up may end it neatly,
		// in the middle: what came by then is not believed.
		err = ctx.Err()
	}
	if err != nil {
		reason := metric.NodeBadPayload
		if classify(err) == metric.NodeTimeout {
			reason = metric.NodeTimeout
		}
		return fail(reason, "read "+v.path, err)
	}
	return nil
}

// unwrapURL takes the method and URL, which the target tells, off an error of
// net/http.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
