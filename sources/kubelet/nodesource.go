package kubelet

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// NodeSource is the source of one node wherever the node is: a node that gets another
// address stays the same source, and what the pipeline knows of it stays. Its methods may
// be called by several goroutines.
type NodeSource struct {
	scraper *Scraper
	mu      struct {
		sync.Mutex
		target Target
		opened Source // nil: to be opened for target
	}
}

// NewNodeSource returns a NodeSource that has no target yet: Move gives it one.
func NewNodeSource(s *Scraper) *NodeSource { return &NodeSource{scraper: s} }

// Move sets where the node is, and reports whether anything has changed.
func (e *NodeSource) Move(t Target) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := &e.mu.target
	if was.Node == t.Node && was.Address == t.Address && was.Path == t.Path && was.Guessed == t.Guessed &&
		sameText(was.Err, t.Err) && sameText(was.PathError, t.PathError) {
		return false
	}
	e.mu.target = t
	// A read of the old address may be running. Closing only leaves it without a
	// connection to return, so its error does not matter.
	_ = e.closeOpened()
	return true
}

// closeOpened closes the source of the present target, if it was opened. e.mu is held.
func (e *NodeSource) closeOpened() error {
	opened := e.mu.opened
	if e.mu.opened = nil; opened == nil {
		return nil
	}
	return opened.Close()
}

// sameText compares errors that are created again each time they occur.
func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// Source returns the source at the present address.
func (e *NodeSource) Source() Source {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.opened == nil {
		e.mu.opened = e.scraper.Open(e.mu.target)
	}
	return e.mu.opened
}

// Read reads the node at its present address.
func (e *NodeSource) Read(ctx context.Context, b *metric.Batch) error { return e.Source().Read(ctx, b) }

// Close closes the connection to the node. A later Read opens another.
func (e *NodeSource) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closeOpened()
}

// Excluded returns the nodes of a cluster that none of the scrapers reads because no node
// selector matches their labels, and the reason in words. It returns nothing if no scraper
// has a selector. Host is a node that is read otherwise; empty for none.
func Excluded(scrapers []*Scraper, facts *cluster.Facts, host metric.NodeName) ([]metric.NodeName, error) {
	var selectors []string
	for _, s := range scrapers {
		if s.opts.Selector != nil && s.static == nil {
			selectors = append(selectors, fmt.Sprintf("%q", s.opts.Selector))
		}
	}
	if len(selectors) == 0 {
		return nil, nil
	}
	read := map[metric.NodeName]bool{host: true}
	for _, s := range scrapers {
		for _, t := range s.Targets(facts) {
			read[t.Node] = true
		}
	}
	var excluded []metric.NodeName
	facts.EachNode(func(n *cluster.Node) bool {
		if !read[n.Name] {
			excluded = append(excluded, n.Name)
		}
		return true
	})
	return excluded, &metric.ReadError{
		Reason: metric.NodeExcluded,
		Err:    fmt.Errorf("its labels do not match the node selector %s", strings.Join(selectors, " or ")),
	}
}
