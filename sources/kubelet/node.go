package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
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
	target Target
	kind   Endpoint
	path   string
	clock  time.Duration // resolution of its timestamps
	parser parser
	url    *url.URL
}

// NodeReader reads one kubelet. It is a source for the manager, and stays the same source when the
// node's address changes, so the pipeline keeps its state of the node. Several goroutines may call
// its methods.
type NodeReader struct {
	scraper *Scraper
	mu      struct {
		sync.Mutex
		target   Target
		endpoint *nodeEndpoint // nil if it was not read at target yet
	}
}

// Open returns the source for a target. It does no I/O.
func (s *Scraper) Open(t Target) *NodeReader {
	n := &NodeReader{scraper: s}
	n.mu.target = t
	return n
}

// Move sets the address of the node, and reports whether anything has changed.
func (n *NodeReader) Move(t Target) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.target.equals(&t) {
		return false
	}
	n.mu.target = t
	n.forgetEndpoint()
	return true
}

// forgetEndpoint closes the idle connection to the node. The caller has locked n.mu.
func (n *NodeReader) forgetEndpoint() {
	if n.mu.endpoint != nil {
		n.scraper.transport.Forget(n.mu.endpoint.url)
		n.mu.endpoint = nil
	}
}

// currentEndpoint returns the endpoint at the current address.
func (n *NodeReader) currentEndpoint() *nodeEndpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.endpoint == nil {
		n.mu.endpoint = n.scraper.newEndpoint(n.scraper.opts.Endpoint, n.mu.target, n.mu.target.Path)
	}
	return n.mu.endpoint
}

// NeedsSecond reports whether the endpoint has neither UIDs nor container IDs, so that ReadSecond
// adds something.
func (s *Scraper) NeedsSecond() bool { return s.opts.Endpoint == Resource }

// newEndpoint returns an endpoint with its own parser. path replaces the usual path, unless it is empty.
func (s *Scraper) newEndpoint(kind Endpoint, t Target, path string) *nodeEndpoint {
	e := &nodeEndpoint{target: t, kind: kind}
	switch kind {
	case Summary:
		e.path, e.clock, e.parser = "/stats/summary", summary.Clock, summary.New()
	case CAdvisor:
		e.path, e.clock, e.parser = "/metrics/cadvisor", cadvisor.Clock, cadvisor.New()
	case Standalone:
		e.path, e.clock, e.parser = "/metrics", cadvisor.Clock, cadvisor.New()
	default:
		e.path, e.clock, e.parser = "/metrics/resource", resource.Clock, resource.NewWithPool(&s.parserMemory)
	}
	e.path = cmp.Or(path, e.path)
	e.url = &url.URL{Scheme: s.opts.Scheme, Host: t.Address, Path: e.path}
	return e
}

// Read fills b with one read of the node's endpoint. Its error is a *metric.ReadError.
func (n *NodeReader) Read(ctx context.Context, b *metric.Batch) error {
	return n.scraper.read(ctx, n.currentEndpoint(), b)
}

// ReadSecond fills b with the CPU and memory of /stats/summary, which has the UIDs of pods. It is
// rarely called, so its parser is not kept.
func (n *NodeReader) ReadSecond(ctx context.Context, b *metric.Batch) error {
	e := n.scraper.newEndpoint(Summary, n.currentEndpoint().target, "")
	e.url.RawQuery = "only_cpu_and_memory=true"
	return n.scraper.read(ctx, e, b)
}

// Close closes the idle connection to the node. The node may still be read, over a new one.
func (n *NodeReader) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgetEndpoint()
	return nil
}

// read reads an endpoint of a node into b.
func (s *Scraper) read(ctx context.Context, e *nodeEndpoint, b *metric.Batch) error {
	b.Resolution = e.clock
	b.Began = time.Now()
	err := s.tryRead(ctx, e, b)
	if b.Ended.Before(b.Began) {
		b.Ended = time.Now()
	}
	return err
}

func (s *Scraper) tryRead(ctx context.Context, e *nodeEndpoint, b *metric.Batch) error {
	if e.target.Err != nil {
		return e.target.Err
	}
	if d, ok := ctx.Deadline(); !ok || time.Until(d) > s.opts.Timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
	}
	most := s.boundsOf(e.target.Node, e.kind)
	buf, err := s.fetch(ctx, e, most.bytes)
	b.Ended = time.Now()
	if buf != nil {
		defer s.putBuffer(buf)
		b.Bytes = buf.body.Len()
	}
	if err != nil {
		return err
	}
	b.NodeTime = buf.date
	req := payload.Request{Node: e.target.Node, Received: payload.Midpoint(b.Began, b.Ended), MaxSamples: most.samples}
	if !e.target.Guessed {
		req.Expect = e.target.Node
	}
	err = e.parser.Parse(buf.body.Bytes(), req, b)
	if read, ok := errors.AsType[*metric.ReadError](err); ok {
		read.Err = fmt.Errorf("parse %s: %w", e.path, read.Err)
	}
	return err
}

// fetch reads the payload of an endpoint, of at most maxBytes. If it fails, it also returns the part
// of the payload that arrived, or nil.
func (s *Scraper) fetch(ctx context.Context, e *nodeEndpoint, maxBytes int64) (*buffer, error) {
	header, err := s.requestHeader(ctx)
	if err != nil {
		return nil, &metric.ReadError{Reason: metric.NodeUnauthorized, Err: err}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	req := (&http.Request{
		Method: http.MethodGet, URL: e.url, Host: e.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	resp, err := s.roundTripper.RoundTrip(req)
	if err != nil {
		return nil, metric.ReadErrorf(reasonOf(err), "read %s: %w", e.path, err)
	}
	defer resp.Body.Close()
	if err := checkIdentity(fetch.PeerCommonName(resp), &e.target); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusUnauthorized && s.opts.Token != nil && s.opts.RefuseToken != nil {
			s.opts.RefuseToken(e.target.Node, strings.TrimPrefix(header.Get("Authorization"), "Bearer "))
		}
		return nil, statusError(resp, e.path)
	}
	// Reads that still wait for their node have no buffer: it is taken only here.
	buf := s.buffers.Get().(*buffer)
	buf.body.Reset()
	buf.date, buf.end = 0, end
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && date.Year() >= 1970 && date.Year() < 2262 {
		buf.date = date.UnixNano()
	}
	err = buf.readBody(ctx, resp, maxBytes, s.budget)
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
		return buf, metric.ReadErrorf(reason, "read %s: %w", e.path, err)
	}
	return buf, nil
}
