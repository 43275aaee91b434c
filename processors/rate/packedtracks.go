package rate

// packedTracks are the tracks of a source at rest, by slot. Their words lie one behind the
// other in the order of the report, in which they are also worked on: a round that comes
// back to a source after seconds finds none of this in the processor's caches, and
// memory that is read from one end to the other is fetched ahead.
type packedTracks struct {
	of    []packedTrack
	words []uint64
	waste int // words that belong to no row any more
}

// makePackedTracks returns rows with room for n more to be added.
func makePackedTracks(n int) packedTracks { return packedTracks{of: make([]packedTrack, 0, n)} }

// add appends a row of an entity that was never seen, and returns its slot.
func (r *packedTracks) add() (slot int32) {
	r.of = append(r.of, packedTrack{})
	return int32(len(r.of) - 1)
}

// adopt appends a copy of another's row.
func (r *packedTracks) adopt(from *packedTracks, slot int32) int32 {
	own := from.of[slot]
	words := from.wordsOf(slot)
	own.at, own.room = uint32(len(r.words)), own.n
	r.of, r.words = append(r.of, own), append(r.words, words...)
	return int32(len(r.of) - 1)
}

func (r *packedTracks) empty(slot int32) bool { return r.of[slot].empty() }

func (r *packedTracks) wordsOf(slot int32) []uint64 {
	o := &r.of[slot]
	return r.words[o.at:][:o.n]
}

// line returns the line of the instance; 0 if it has none.
func (r *packedTracks) line(slot int32) uint32 {
	if r.empty(slot) {
		return 0
	}
	return uint32(r.wordsOf(slot)[0] >> headLine)
}

// clear makes a row one of an entity that was never seen.
func (r *packedTracks) clear(slot int32) {
	r.waste += int(r.of[slot].room)
	r.of[slot] = packedTrack{}
}

// pack puts t to rest in a row.
func (r *packedTracks) pack(slot int32, t *track) {
	o := &r.of[slot]
	words := o.pack(r.words[o.at:][:0:o.room], t)
	if o.n = uint16(len(words)); o.n > o.room { // it has outgrown its place
		r.waste += int(o.room)
		o.at, o.room = uint32(len(r.words)), o.n
		r.words = append(r.words, words...)
	}
}

// unpack spreads a row out in t.
func (r *packedTracks) unpack(slot int32, t *track) { r.of[slot].unpack(r.wordsOf(slot), t) }

// tidy moves the rows together if much of the memory is of no use. A row keeps the
// room it once needed: readings that come twice or late make some longer now and then.
func (r *packedTracks) tidy() {
	used := len(r.words) - r.waste
	if 8*(cap(r.words)-used) <= used {
		return
	}
	words := make([]uint64, 0, used)
	for i := range r.of {
		o := &r.of[i]
		from := o.at
		o.at = uint32(len(words))
		words = append(words, r.words[from:][:o.room]...)
	}
	r.words, r.waste = words, 0
}
