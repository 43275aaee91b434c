package informer

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// DefaultMaxNodes is twice the number of nodes that weir is made for.
const DefaultMaxNodes = 10_000

// nodeLimit bounds how many nodes the facts have, so that an account that may create Nodes, or a
// controller that is broken, cannot fill weir's memory. Of too many, it keeps first those that are ready:
// Kubernetes sets a Node without a kubelet to not ready after a minute. Among those it keeps first those
// that it knew before. A node that is left out is judged again when it changes: kubelets report every five
// minutes.
type nodeLimit struct {
	most int
	seed maphash.Seed
	// leftOut has the hashes of the names of the nodes that are left out. Names can be long.
	leftOut map[uint64]struct{}
}

// keep makes p a change after which old has no more nodes than the limit.
func (l *nodeLimit) keep(p *pending, old *cluster.Facts) {
	if p.allNodes {
		clear(l.leftOut)
	}
	next := make([]rankedNode, 0, len(p.nodes))
	for name, n := range p.nodes {
		delete(l.leftOut, l.hash(name))
		if n != nil {
			next = append(next, newRankedNode(n, old))
		}
	}
	// Slow path: there may be too many.
	if len(next) > 0 && old.Nodes()+len(next) > l.most {
		if !p.allNodes {
			old.EachNode(func(n *cluster.Node) bool {
				if _, changed := p.nodes[n.Name]; !changed {
					next = append(next, newRankedNode(n, old))
				}
				return true
			})
		}
		slices.SortFunc(next, func(a, b rankedNode) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Name, b.Name))
		})
		for _, n := range next[min(len(next), l.most):] {
			p.nodes[n.Name] = nil // as if it were gone
			l.leftOut[l.hash(n.Name)] = struct{}{}
		}
	}
	p.leftOut = len(l.leftOut)
}

func (l *nodeLimit) hash(name metric.NodeName) uint64 { return maphash.String(l.seed, string(name)) }

// rankedNode is a node with its rank: those of the lowest are kept first.
type rankedNode struct {
	*cluster.Node
	rank int
}

func newRankedNode(n *cluster.Node, old *cluster.Facts) rankedNode {
	r := rankedNode{Node: n}
	if !n.Ready {
		r.rank += 2
	}
	if old.Node(n.Name) == nil {
		r.rank++
	}
	return r
}
