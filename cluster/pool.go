package cluster

import (
	"hash/maphash"
	"maps"
)

// pool lets facts share what is equal in many of them: a namespace's name, the
// labels of a ReplicaSet's pods. Decoding gives each pod copies of its own. It
// is for one goroutine.
type pool struct {
	seed  maphash.Seed
	texts map[string]string
	sets  map[uint64]map[string]string
}

// poolSize bounds each table. A table that is full starts afresh: sharing less
// for a while costs only memory.
const poolSize = 1 << 15

func newPool() *pool {
	return &pool{seed: maphash.MakeSeed(), texts: map[string]string{}, sets: map[uint64]map[string]string{}}
}

// text returns s, in memory shared with those who asked for the same.
func (p *pool) text(s string) string {
	if t, ok := p.texts[s]; ok {
		return t
	}
	if len(p.texts) >= poolSize {
		clear(p.texts)
	}
	p.texts[s] = s
	return s
}

// labels returns a map equal to m, shared with those who asked for the same.
// It must not be changed.
func (p *pool) labels(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	var sum uint64 // of the pairs' hashes: their order does not matter
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
	if len(p.sets) >= poolSize {
		clear(p.sets)
	}
	own := make(map[string]string, len(m))
	for k, v := range m {
		own[p.text(k)] = p.text(v)
	}
	p.sets[sum] = own
	return own
}
