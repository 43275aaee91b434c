package payload

const (
	// keepRounds is how many rounds a name that no longer comes is remembered:
	// a container that misses a read or two is not a new name.
	keepRounds = 4
	// sweepEvery is how many rounds pass between two searches for such names.
	sweepEvery = 4
)

// Name is a name as it arrived, with what was made of it.
type Name[T any] struct {
	Data  T
	key   string
	next  *Name[T] // the one that came after it the last time
	round uint32
}

// Key returns the bytes the name arrived in.
func (n *Name[T]) Key() string { return n.key }

// Names remembers names by the bytes they arrived in, so that a name seen
// before costs neither parsing nor memory. Payloads repeat the order of their
// lines from round to round, so the name that followed the last one found is
// tried first. The zero Names is ready to use.
//
// It is bounded: names that have not come for a few rounds are forgotten, and
// beyond Max new names are not remembered.
type Names[T any] struct {
	// Max bounds the names remembered; 0 means DefaultMaxSamples.
	Max   int
	byKey map[string]*Name[T]
	first *Name[T]  // of a round
	link  **Name[T] // to what came after the last name found: its next, or first
	round uint32
}

// Begin starts a round.
func (n *Names[T]) Begin() {
	n.round++
	n.link = &n.first
	if n.byKey == nil {
		n.byKey = map[string]*Name[T]{}
	}
	if n.round%sweepEvery == 0 {
		n.sweep()
	}
}

// sweep forgets the names that have not come for keepRounds.
func (n *Names[T]) sweep() {
	before := len(n.byKey)
	for key, name := range n.byKey {
		if n.round-name.round > keepRounds {
			delete(n.byKey, key)
		}
	}
	if len(n.byKey) != before {
		n.unlink()
	}
}

// Forget forgets a name that turned out to be none.
func (n *Names[T]) Forget(name *Name[T]) {
	delete(n.byKey, name.key)
	n.unlink()
}

// unlink forgets the order of names. A forgotten name must not be found through
// its neighbour: the same key would then have two names.
func (n *Names[T]) unlink() {
	n.first = nil
	n.link = &n.first
	for _, name := range n.byKey {
		name.next = nil
	}
}

// Guess returns the name that followed the last one found, if b begins with
// its key, and nil otherwise. A name it returns counts as found.
func (n *Names[T]) Guess(b []byte) *Name[T] {
	g := *n.link
	if g == nil || len(b) < len(g.key) || string(b[:len(g.key)]) != g.key {
		return nil
	}
	n.link = &g.next
	g.round = n.round
	return g
}

// Find returns the name of that key. The second result is false if it is new,
// and its Data zero, to be filled by the caller.
func (n *Names[T]) Find(key []byte) (*Name[T], bool) {
	name := *n.link
	if name == nil || string(key) != name.key {
		name = n.byKey[string(key)]
	}
	found := name != nil
	if !found {
		name = &Name[T]{key: string(key)}
		limit := n.Max
		if limit <= 0 {
			limit = DefaultMaxSamples
		}
		if len(n.byKey) >= limit {
			// It lives for this call only; linking it would keep it.
			name.round = n.round
			return name, false
		}
		n.byKey[name.key] = name
	}
	*n.link = name
	n.link = &name.next
	name.round = n.round
	return name, found
}

// Len returns how many names are remembered.
func (n *Names[T]) Len() int { return len(n.byKey) }
