package payload

const (
	// keepRounds is the number of rounds for which a name is kept after it last occurred. A container
	// that is missing from one or two reads does not become a new name.
	keepRounds = 4
	// sweepEvery is the number of rounds between two searches for names to remove.
	sweepEvery = 4
	// bytesPerName is more than most names have.
	bytesPerName = 512
)

// CachedName is the bytes of a name, with their meaning.
type CachedName[T any] struct {
	Data  T
	key   string
	next  *CachedName[T] // the name that followed it in the last payload
	round uint32         // the last round in which it occurred
}

// Key returns the bytes of the name.
func (n *CachedName[T]) Key() string { return n.key }

// NameCache maps the bytes of names to their meaning, so that a known name is neither parsed nor
// allocated again. Payloads keep the order of their lines. NameCache therefore first tries the name
// that followed the last found one in the previous payload: one comparison instead of a map lookup.
// The zero NameCache is ready to use.
//
// Its size is bounded: names that have not occurred for keepRounds rounds are removed, and new
// names beyond Max, or beyond Max times bytesPerName bytes, are not kept.
type NameCache[T any] struct {
	// Max bounds the number of names; 0 means DefaultMaxSamples.
	Max   int
	bytes int // of the keys
	byKey map[string]*CachedName[T]
	first *CachedName[T]  // the first name of a payload
	link  **CachedName[T] // to the name expected next: field next of the last found one, or first
	round uint32
}

// Begin starts a payload.
func (c *NameCache[T]) Begin() {
	c.round++
	c.link = &c.first
	if c.byKey == nil {
		c.byKey = map[string]*CachedName[T]{}
	}
	if c.round%sweepEvery == 0 {
		c.sweep()
	}
}

// sweep removes the names that have not occurred for keepRounds rounds.
func (c *NameCache[T]) sweep() {
	before := len(c.byKey)
	for key, name := range c.byKey {
		if c.round-name.round > keepRounds {
			delete(c.byKey, key)
			c.bytes -= len(key)
		}
	}
	if len(c.byKey) != before {
		c.unlink()
	}
}

// Remove removes a name that is not valid.
func (c *NameCache[T]) Remove(name *CachedName[T]) {
	if c.byKey[name.key] == name {
		delete(c.byKey, name.key)
		c.bytes -= len(name.key)
	}
	c.unlink()
}

// unlink forgets the order of the names. Otherwise a removed name could be found through the name
// before it, and one key would have two names.
func (c *NameCache[T]) unlink() {
	c.first = nil
	c.link = &c.first
	for _, name := range c.byKey {
		name.next = nil
	}
}

// Next returns the name that is expected next if b begins with its key, else nil. A name that it
// returns counts as found.
func (c *NameCache[T]) Next(b []byte) *CachedName[T] {
	name := *c.link
	if name == nil || len(b) < len(name.key) || string(b[:len(name.key)]) != name.key {
		return nil
	}
	c.link = &name.next
	name.round = c.round
	return name
}

// Find returns the name with that key, and whether it was known. The caller must set the Data of a
// new name.
func (c *NameCache[T]) Find(key []byte) (*CachedName[T], bool) {
	name := *c.link
	if name == nil || string(key) != name.key {
		name = c.byKey[string(key)]
	}
	found := name != nil
	if !found {
		name = &CachedName[T]{key: string(key)}
		limit := c.Max
		if limit <= 0 {
			limit = DefaultMaxSamples
		}
		if len(c.byKey) >= limit || c.bytes+len(key) > limit*bytesPerName {
			// The name is not linked, because a link would keep it in memory.
			name.round = c.round
			return name, false
		}
		c.byKey[name.key] = name
		c.bytes += len(key)
	}
	*c.link = name
	c.link = &name.next
	name.round = c.round
	return name, found
}

// Len returns how many names are kept.
func (c *NameCache[T]) Len() int { return len(c.byKey) }
