package payload

import "hash/maphash"

const (
	// keepRounds is the number of rounds for which a name is kept after it last occurred. A container
	// that is missing from one or two reads does not become a new name.
	keepRounds = 4
	// sweepEvery is the number of rounds between two searches for names to remove.
	sweepEvery = 4
)

// seed is random: a node cannot make two names with one hash.
var seed = maphash.MakeSeed()

// CachedName is what the bytes of a name mean.
type CachedName[T any] struct {
	Data  T
	hash  uint64
	next  *CachedName[T] // the name that followed it in the last payload
	size  int32          // in bytes
	round uint32         // the last round in which it occurred
}

// Size returns the number of bytes of the name.
func (n *CachedName[T]) Size() int { return int(n.size) }

// isKey reports whether the name has that hash and as many bytes as the key.
func (n *CachedName[T]) isKey(hash uint64, key []byte) bool {
	return n.hash == hash && int(n.size) == len(key)
}

// NameCache maps the bytes of names to their meaning, so that a known name is neither parsed nor
// allocated again. Payloads keep the order of their lines. NameCache therefore first tries the name
// that followed the last found one in the previous payload: one comparison instead of a map lookup.
// The zero NameCache is ready to use.
//
// It keeps a hash of 64 bits in the place of the bytes, which are most of what a parser would keep, and
// mistakes one name for another once in 2^64 comparisons.
//
// Its size is bounded: names that have not occurred for keepRounds rounds are removed, and new
// names beyond Max are not kept.
type NameCache[T any] struct {
	// Max bounds the number of names; 0 means DefaultMaxSamples.
	Max    int
	byHash map[uint64]*CachedName[T]
	first  *CachedName[T]  // the first name of a payload
	link   **CachedName[T] // to the name expected next: field next of the last found one, or first
	round  uint32
}

// Begin starts a payload.
func (c *NameCache[T]) Begin() {
	c.round++
	c.link = &c.first
	if c.byHash == nil {
		c.byHash = map[uint64]*CachedName[T]{}
	}
	if c.round%sweepEvery == 0 {
		c.sweep()
	}
}

// sweep removes the names that have not occurred for keepRounds rounds.
func (c *NameCache[T]) sweep() {
	before := len(c.byHash)
	for hash, name := range c.byHash {
		if c.round-name.round > keepRounds {
			delete(c.byHash, hash)
		}
	}
	if len(c.byHash) != before {
		c.unlink()
	}
}

// Remove removes a name that is not valid.
func (c *NameCache[T]) Remove(name *CachedName[T]) {
	if c.byHash[name.hash] == name {
		delete(c.byHash, name.hash)
	}
	c.unlink()
}

// unlink forgets the order of the names. Otherwise a removed name could be found through the name
// before it, and one key would have two names.
func (c *NameCache[T]) unlink() {
	c.first = nil
	c.link = &c.first
	for _, name := range c.byHash {
		name.next = nil
	}
}

// Next returns the name that is expected next if b begins with it, else nil. A name that it returns
// counts as found.
func (c *NameCache[T]) Next(b []byte) *CachedName[T] {
	name := *c.link
	if name == nil || len(b) < name.Size() || maphash.Bytes(seed, b[:name.size]) != name.hash {
		return nil
	}
	c.link = &name.next
	name.round = c.round
	return name
}

// Find returns the name with that key, and whether it was known. The caller must set the Data of a
// new name.
func (c *NameCache[T]) Find(key []byte) (*CachedName[T], bool) {
	hash := maphash.Bytes(seed, key)
	name := *c.link
	if name == nil || !name.isKey(hash, key) {
		name = c.byHash[hash]
	}
	found := name != nil && name.isKey(hash, key)
	if !found {
		name = &CachedName[T]{hash: hash, size: int32(len(key))}
		limit := c.Max
		if limit <= 0 {
			limit = DefaultMaxSamples
		}
		if len(c.byHash) >= limit {
			// The name is not linked, because a link would keep it in memory.
			name.round = c.round
			return name, false
		}
		c.byHash[hash] = name
	}
	*c.link = name
	c.link = &name.next
	name.round = c.round
	return name, found
}
