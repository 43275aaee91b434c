package kubelet

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// NodeSource is the source of one node. It stays the same source when the node's address changes,
// so the pipeline keeps its state of the node. Several goroutines may call its methods.
type NodeSource struct {
	scraper *Scraper
	mu      struct {
		sync.Mutex
		target Target
		opened *NodeReader // nil if no source is open for target
	}
}

// NewNodeSource returns a NodeSource without a target. Move sets the target.
func NewNodeSource(s *Scraper) *NodeSource { return &NodeSource{scraper: s} }

// Move sets the address of the node, and reports whether anything has changed.
func (n *NodeSource) Move(t Target) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := &n.mu.target
	if old.Node == t.Node && old.Address == t.Address && old.Path == t.Path && old.Guessed == t.Guessed &&
		sameText(old.Err, t.Err) && sameText(old.PathError, t.PathError) {
		return false
	}
	n.mu.target = t
	// A read of the old address may still be running. After Close its connection is not kept, so the
	// error of Close does not matter.
	_ = n.closeOpened()
	return true
}

// closeOpened closes the source for the current target, if it was opened. The caller has locked
// n.mu.
func (n *NodeSource) closeOpened() error {
	opened := n.mu.opened
	if n.mu.opened = nil; opened == nil {
		return nil
	}
	return opened.Close()
}

// sameText reports whether two errors have the same text. The errors are created again each time.
func sameText(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

// reader returns the reader for the current address.
func (n *NodeSource) reader() *NodeReader {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.opened == nil {
		n.mu.opened = n.scraper.Open(n.mu.target)
	}
	return n.mu.opened
}

// Read reads the node at its current address.
func (n *NodeSource) Read(ctx context.Context, b *metric.Batch) error { return n.reader().Read(ctx, b) }

// ReadSecond is NodeReader.ReadSecond at the current address.
func (n *NodeSource) ReadSecond(ctx context.Context, b *metric.Batch) error {
	return n.reader().ReadSecond(ctx, b)
}

// Close closes the connection to the node. A later Read opens a new one.
func (n *NodeSource) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closeOpened()
}

// Excluded returns the nodes of a cluster that no scraper reads because no node selector matches
// their labels, and the reason as an error. It returns nothing if no scraper has a selector. host
// is a node that is read in another way; empty if there is none.
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
