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
	"github.com/weir-metrics/weir/sources/kubelet/fetch"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
)

// parser parses the payloads of one endpoint of one node.
type parser interface {
	Parse(body []byte, req payload.Request, b *metric.Batch) error
}

// nodeEndpoint is one endpoint of one node.
type nodeEndpoint struct {
	kind   Endpoint
	path   string
	clock  time.Duration // resolution of its timestamps
	parser parser
	url    *url.URL
}

// NodeReader reads one kubelet. It is a source for the manager.
type NodeReader struct {
	target   Target
	scraper  *Scraper
	endpoint *nodeEndpoint
}

// Open returns the source for a target. It does no I/O.
func (s *Scraper) Open(t Target) *NodeReader {
	n := &NodeReader{target: t, scraper: s, endpoint: s.newEndpoint(s.opts.Endpoint)}
	if t.Path != "" {
		n.endpoint.path = t.Path
	}
	n.endpoint.url = n.url(n.endpoint.path)
	return n
}

// NeedsSecond reports whether the endpoint has neither UIDs nor container IDs, so that ReadSecond
// adds something.
func (s *Scraper) NeedsSecond() bool { return s.opts.Endpoint == Resource }

// newEndpoint returns an endpoint with its own parser and without a URL.
func (s *Scraper) newEndpoint(e Endpoint) *nodeEndpoint {
	switch e {
	case Summary:
		return &nodeEndpoint{kind: e, path: "/stats/summary", clock: summary.Clock, parser: summary.New()}
	case CAdvisor:
		return &nodeEndpoint{kind: e, path: "/metrics/cadvisor", clock: cadvisor.Clock, parser: cadvisor.New()}
	case Standalone:
		return &nodeEndpoint{kind: e, path: "/metrics", clock: cadvisor.Clock, parser: cadvisor.New()}
	default:
		return &nodeEndpoint{kind: e, path: "/metrics/resource", clock: resource.Clock, parser: resource.NewWithPool(&s.parserMemory)}
	}
}

func (n *NodeReader) url(path string) *url.URL {
	return &url.URL{Scheme: n.scraper.opts.Scheme, Host: n.target.Address, Path: path}
}

// Read fills b with one read of the node's endpoint. Its error is a *metric.ReadError.
func (n *NodeReader) Read(ctx context.Context, b *metric.Batch) error {
	return n.read(ctx, n.endpoint, b)
}

// ReadSecond fills b with the CPU and memory of /stats/summary, which has the UIDs of pods. It is
// rarely called, so its parser is not kept.
func (n *NodeReader) ReadSecond(ctx context.Context, b *metric.Batch) error {
	e := n.scraper.newEndpoint(Summary)
	e.url = n.url(e.path)
	e.url.RawQuery = "only_cpu_and_memory=true"
	return n.read(ctx, e, b)
}

// Close closes the idle connection to the node. The node may still be read, over a new one.
func (n *NodeReader) Close() error {
	n.scraper.transport.Forget(n.endpoint.url)
	return nil
}

// read reads an endpoint of the node into b.
func (n *NodeReader) read(ctx context.Context, e *nodeEndpoint, b *metric.Batch) error {
	b.Resolution = e.clock
	b.Began = time.Now()
	err := n.tryRead(ctx, e, b)
	if b.Ended.Before(b.Began) {
		b.Ended = time.Now()
	}
	return err
}

func (n *NodeReader) tryRead(ctx context.Context, e *nodeEndpoint, b *metric.Batch) error {
	s := n.scraper
	if n.target.Err != nil {
		return n.target.Err
	}
	if d, ok := ctx.Deadline(); !ok || time.Until(d) > s.opts.Timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
	}
	most := s.boundsOf(n.target.Node, e.kind)
	buf, err := n.fetch(ctx, e, most.bytes)
	b.Ended = time.Now()
	if buf != nil {
		defer s.putBuffer(buf)
		b.Bytes = buf.body.Len()
	}
	if err != nil {
		return err
	}
	b.NodeTime = buf.date
	err = e.parser.Parse(buf.body.Bytes(), s.parseRequest(&n.target, b.Began, b.Ended, most.samples), b)
	if read, ok := errors.AsType[*metric.ReadError](err); ok {
		read.Err = fmt.Errorf("parse %s: %w", e.path, read.Err)
	}
	return err
}

// fetch reads the payload of an endpoint, of at most maxBytes. If it fails, it also returns the part
// of the payload that arrived, or nil.
func (n *NodeReader) fetch(ctx context.Context, e *nodeEndpoint, maxBytes int64) (*buffer, error) {
	header, err := n.scraper.requestHeader(ctx)
	if err != nil {
		return nil, &metric.ReadError{Reason: metric.NodeUnauthorized, Err: err}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	req := (&http.Request{
		Method: http.MethodGet, URL: e.url, Host: e.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	resp, err := n.scraper.roundTripper.RoundTrip(req)
	if err != nil {
		return nil, readError(reasonOf(err), "read "+e.path, err)
	}
	defer resp.Body.Close()
	if err := checkIdentity(fetch.PeerCommonName(resp), &n.target); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusUnauthorized && n.scraper.opts.Token != nil && n.scraper.opts.RefuseToken != nil {
			n.scraper.opts.RefuseToken(strings.TrimPrefix(header.Get("Authorization"), "Bearer "))
		}
		return nil, statusError(resp, e.path)
	}
	// Reads that still wait for their node have no buffer: it is taken only here.
	buf := n.scraper.buffers.Get().(*buffer)
	buf.body.Reset()
	buf.date, buf.end = 0, end
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && date.Year() >= 1970 && date.Year() < 2262 {
		buf.date = date.UnixNano()
	}
	err = buf.readBody(ctx, resp, maxBytes, n.scraper.budget)
	if err == nil {
		// A server may end a chunked body regularly but too early, because we close the connection at the
		// deadline. Such a payload is not used.
		err = ctx.Err()
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errOutgrown) {
			err = cause
		}
		reason := metric.NodeBadPayload
		if reasonOf(err) == metric.NodeTimeout {
			reason = metric.NodeTimeout
		}
		return buf, readError(reason, "read "+e.path, err)
	}
	return buf, nil
}
