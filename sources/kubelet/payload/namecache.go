package payload

const (
	// keepRounds is how many rounds a name is kept that no longer occurs: a container that
	// is missing from a read or two is not a new name.
	keepRounds = 4
	// sweepEvery is how many rounds pass between two searches for names to remove.
	sweepEvery = 4
)

// CachedName is a name as it arrived, with what it means.
type CachedName[T any] struct {
	Data  T
	key   string
	next  *CachedName[T] // the name that followed it in the last payload
	round uint32         // of its last occurrence
}

// Key returns the bytes of the name.
func (n *CachedName[T]) Key() string { return n.key }

// NameCache maps the bytes of names to their meaning, so that a known name is neither
// parsed nor allocated again. Payloads keep the order of their lines, so the name that
// followed the last found one in the payload before is tried first: one comparison instead
// of a map lookup. The zero NameCache is ready to use.
//
// It is bounded: names that do not occur for keepRounds rounds are removed, and beyond Max
// new names are not kept.
type NameCache[T any] struct {
	// Max bounds the names that are kept; 0 means DefaultMaxSamples.
	Max   int
	byKey map[string]*CachedName[T]
	first *CachedName[T]  // of a payload
	link  **CachedName[T] // to the name expected next: field next of the last found one, or first
	round uint32
}

// Begin begins a payload.
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

// sweep removes the names that have not occurred for keepRounds.
func (c *NameCache[T]) sweep() {
	before := len(c.byKey)
	for key, name := range c.byKey {
		if c.round-name.round > keepRounds {
			delete(c.byKey, key)
		}
	}
	if len(c.byKey) != before {
		c.unlink()
	}
}

// Remove removes a name that is not valid.
func (c *NameCache[T]) Remove(name *CachedName[T]) {
	delete(c.byKey, name.key)
	c.unlink()
}

// unlink drops the order of names. A removed name must not be found through its
// neighbour: one key would have two names.
func (c *NameCache[T]) unlink() {
	c.first = nil
	c.link = &c.first
	for _, name := range c.byKey {
		name.next = nil
	}
}

// Next returns the name expected next if b begins with its key, else nil. A returned name
// counts as found.
func (c *NameCache[T]) Next(b []byte) *CachedName[T] {
	name := *c.link
	if name == nil || len(b) < len(name.key) || string(b[:len(name.key)]) != name.key {
		return nil
	}
	c.link = &name.next
	name.round = c.round
	return name
}

// Find returns the name of that key, and whether it was known. The caller fills the Data
// of a new name.
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
		if len(c.byKey) >= limit {
			// It is not linked, because a link would keep it.
			name.round = c.round
			return name, false
		}
		c.byKey[name.key] = name
	}
	*c.link = name
	c.link = &name.next
	name.round = c.round
	return name, found
}

// Len returns how many names are kept.
func (c *NameCache[T]) Len() int { return len(c.byKey) }
