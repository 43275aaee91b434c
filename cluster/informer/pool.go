package informer

import (
	"hash/maphash"
	"maps"
	"math"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
)

// pool lets facts share what is equal in many of them: the name of a namespace, the labels of a
// ReplicaSet's pods. Decoding gives each pod its own copies. Only one goroutine may use it.
type pool struct {
	seed  maphash.Seed
	texts map[string]string
	sets  map[uint64]map[string]string
	asked map[uint64]cluster.Requirements
	owned map[cluster.Owner]*cluster.Owner
	pods  func() int // how many pods the cluster has; nil, or the result 0: not known

	values  metric.Values // buffer for the object under conversion
	letters []byte        // another buffer for it
}

// Each table has at most two entries for each pod of the cluster, at least fewest and at most poolSize.
// Without the number of pods, what the pods of Jobs leave behind fills 20 MB in a small cluster: each Job
// has labels of its own. A full table is cleared: less sharing for a while only costs memory.
const fewest, poolSize = 1 << 10, 1 << 15

func newPool() *pool {
	return &pool{seed: maphash.MakeSeed(), texts: map[string]string{}, sets: map[uint64]map[string]string{}, asked: map[uint64]cluster.Requirements{}, owned: map[cluster.Owner]*cluster.Owner{}}
}

// isFull reports whether a table with that many entries is full.
func (p *pool) isFull(entries int) bool {
	if entries < fewest || entries >= poolSize || p.pods == nil {
		return entries >= poolSize
	}
	pods := p.pods()
	return pods > 0 && entries >= 2*pods
}

// text returns s in memory that all callers with an equal string share.
func (p *pool) text(s string) string {
	if t, ok := p.texts[s]; ok {
		return t
	}
	if p.isFull(len(p.texts)) {
		clear(p.texts)
	}
	p.texts[s] = s
	return s
}

// owner returns an Owner that all callers with the same kind and name share. It must not be changed.
func (p *pool) owner(kind, name string) *cluster.Owner {
	key := cluster.Owner{Kind: kind, Name: name}
	o, ok := p.owned[key]
	if !ok {
		if p.isFull(len(p.owned)) {
			clear(p.owned)
		}
		o = &cluster.Owner{Kind: p.text(kind), Name: p.text(name)}
		p.owned[*o] = o
	}
	return o
}

// labels returns a map equal to m that all callers with an equal map share. It must not be changed.
func (p *pool) labels(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	var sum uint64 // sum of the pairs' hashes, because their order does not matter
	for k, v := range m {
		var h maphash.Hash
		h.SetSeed(p.seed)
		h.WriteString(k)
		h.WriteByte('=')
		h.WriteString(v)
		sum += h.Sum64()
	}
	if same, ok := p.sets[sum]; ok && maps.Equal(same, m) {
		return same
	}
	if p.isFull(len(p.sets)) {
		clear(p.sets)
	}
	own := make(map[string]string, len(m))
	for k, v := range m {
		own[p.text(k)] = p.text(v)
	}
	p.sets[sum] = own
	return own
}

// requirements returns the values that fill sets, shared by all callers with equal values.
func (p *pool) requirements(fill func(*metric.Values)) cluster.Requirements {
	v := &p.values
	v.Reset()
	fill(v)
	if v.Len() == 0 {
		return cluster.Requirements{}
	}
	var h maphash.Hash
	h.SetSeed(p.seed)
	for id, x := range v.All() {
		maphash.WriteComparable(&h, id)
		maphash.WriteComparable(&h, math.Float64bits(x))
	}
	sum := h.Sum64()
	if same, ok := p.asked[sum]; ok && equal(same.Values(), v) {
		return same
	}
	if p.isFull(len(p.asked)) {
		clear(p.asked)
	}
	own := new(metric.Values)
	own.CopyFrom(v)
	p.asked[sum] = cluster.NewRequirements(own)
	return p.asked[sum]
}

func equal(a, b *metric.Values) bool {
	if a.Len() != b.Len() {
		return false
	}
	for id, x := range a.All() {
		if y, ok := b.Get(id); !ok || x != y {
			return false
		}
	}
	return true
}

// gather moves the strings that no other pod has (its name, its UIDs, its containers' IDs) into one
// piece of memory. Separate strings would each be rounded up, and an ID would keep the longer
// string with the runtime's name.
func (p *pool) gather(f *cluster.Pod) {
	b := p.letters[:0]
	b = append(b, f.Name...)
	b = append(b, f.UID...)
	if f.ConfigHash != nil {
		b = append(b, *f.ConfigHash...)
	}
	for i := range f.Containers {
		b = append(b, f.Containers[i].ID...)
		b = append(b, f.Containers[i].LastID()...)
	}
	p.letters = b
	all := string(b)
	f.Name, all = cut(all, f.Name)
	f.UID, all = cut(all, f.UID)
	if f.ConfigHash != nil {
		*f.ConfigHash, all = cut(all, *f.ConfigHash)
	}
	for i := range f.Containers {
		c := &f.Containers[i]
		c.ID, all = cut(all, c.ID)
		if c.Previous != nil {
			c.Previous.LastID, all = cut(all, c.Previous.LastID)
		}
	}
}

// cut splits all after the length of s. The first part equals s.
func cut[S ~string](all string, s S) (own S, rest string) {
	return S(all[:len(s)]), all[len(s):]
}
