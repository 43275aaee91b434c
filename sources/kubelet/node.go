package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/fetch"
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
	n := &Node{target: t, scraper: s, view: s.viewOf(s.opts.Endpoint)}
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
func (s *Scraper) viewOf(e Endpoint) *view {
	switch e {
	case Summary:
		return &view{path: "/stats/summary", clock: summary.Clock, parser: summary.New()}
	case CAdvisor:
		return &view{path: "/metrics/cadvisor", clock: cadvisor.Clock, parser: cadvisor.New()}
	case Container:
		return &view{path: "/stats/container/", body: statscontainer.Query, clock: statscontainer.Clock, parser: statscontainer.New()}
	default:
		return &view{path: "/metrics/resource", clock: resource.Clock, parser: resource.Sharing(&s.rooms)}
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
	v := t.scraper.viewOf(Summary)
	v.query = "only_cpu_and_memory=true"
	v.url = t.url(v)
	return t.read(ctx, v, b)
}

// Close closes the connection that is kept to the node. The node may still be
// read, over a new one.
func (n *Node) Close() error {
	n.scraper.transport.Forget(n.view.url)
	return nil
}

// read reads a view of the node into b.
func (n *Node) read(ctx context.Context, v *view, b *metric.Batch) error {
	b.Resolution = v.clock
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
	if d, ok := ctx.Deadline(); !ok || time.Until(d) > s.opts.Timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
	}
	if err := s.enter(ctx); err != nil {
		return &metric.ReadError{Reason: metric.NodeTimeout, Err: err}
	}
	defer s.leave()
	b.Began = time.Now()
	buf, err := n.fetch(ctx, v)
	b.Ended = time.Now()
	if buf != nil {
		defer s.putBack(buf)
		b.Bytes = len(buf.bytes)
	}
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

// fetch gets the payload. Beside an error there is what came of it, or nil.
func (n *Node) fetch(ctx context.Context, v *view) (*buffer, error) {
	header, err := n.scraper.header()
	if err != nil {
		return nil, &metric.ReadError{Reason: metric.NodeUnauthorized, Err: err}
	}
	req := (&http.Request{
		Method: http.MethodGet, URL: v.url, Host: v.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if v.body != "" { // it only reads, and may be sent twice
		req.Method, req.ContentLength, req.Body = http.MethodPost, int64(len(v.body)), io.NopCloser(strings.NewReader(v.body))
		req.Header = header.Clone()
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := n.scraper.carrier.RoundTrip(req)
	if err != nil {
		return nil, fail(classify(err), "read "+v.path, err)
	}
	defer resp.Body.Close()
	if err := checkIdentity(fetch.Peer(resp), &n.target); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, status(resp, v.path)
	}
	// Only now, so that reads which wait for their nodes hold none.
	buf := n.scraper.buffers.Get().(*buffer)
	buf.bytes, buf.date = buf.bytes[:0], 0
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
		return buf, fail(reason, "read "+v.path, err)
	}
	return buf, nil
}
