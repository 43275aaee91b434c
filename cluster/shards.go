package cluster

import "maps"

// shards is a map in 256 parts, so that one change copies a 256th of it. It is
// changed only through a shardsChange; readers need no lock.
type shards[K ~string, V any] [256]shard[K, V]

// shard is one part. Two shards of one generation are equal.
type shard[K ~string, V any] struct {
	entries    map[K]V
	generation uint64
}

func shardOf[K ~string](name K) uint8 {
	h := hashOf(name)
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}

// hashOf is FNV-1a.
func hashOf[K ~string](name K) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

func (s *shards[K, V]) get(name K) V { return s[shardOf(name)].entries[name] }

func (s *shards[K, V]) len() (n int) {
	for _, m := range s {
		n += len(m.entries)
	}
	return n
}

// each calls do for every entry, in no order, until it returns false.
func (s *shards[K, V]) each(do func(K, V) bool) {
	for _, m := range s {
		for k, v := range m.entries {
			if !do(k, v) {
				return
			}
		}
	}
}

// shardsChange changes shards and leaves those that others see as they are.
type shardsChange[K ~string, V any] struct {
	of     *shards[K, V]
	copied [256]bool
}

func (c *shardsChange[K, V]) own(name K) map[K]V {
	i := shardOf(name)
	if !c.copied[i] {
		c.of[i] = shard[K, V]{maps.Clone(c.of[i].entries), nextGeneration()}
		c.copied[i] = true
	}
	if c.of[i].entries == nil {
		c.of[i].entries = map[K]V{}
	}
	return c.of[i].entries
}

func (c *shardsChange[K, V]) set(name K, v V) { c.own(name)[name] = v }

func (c *shardsChange[K, V]) drop(name K) {
	if _, is := c.of[shardOf(name)].entries[name]; is {
		delete(c.own(name), name)
	}
}
