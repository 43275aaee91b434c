package rate

import "github.com/weir-metrics/weir/metric"

// packedTracks are the packed tracks of a source, by slot. Their words are contiguous, in the
// order of the report, which is also the order of use. A source comes back after seconds, when
// none of this is in the processor's caches, and memory that is read in order is prefetched.
type packedTracks struct {
	of    []packedTrack
	words []uint64
	waste int // words that no track uses any more
}

// follow makes room for each slot of t, and clears the tracks of freed slots.
func (r *packedTracks) follow(t *metric.SlotTable) {
	for _, slot := range t.Freed() {
		if slot < r.len() {
			r.clear(slot)
		}
	}
	r.of = metric.BySlot(t, r.of)
}

// len returns a number larger than every slot.
func (r *packedTracks) len() uint32 { return uint32(len(r.of)) }

func (r *packedTracks) empty(slot uint32) bool { return r.of[slot].empty() }

func (r *packedTracks) wordsOf(slot uint32) []uint64 {
	o := &r.of[slot]
	return r.words[o.at:][:o.n]
}

// line returns the line of the instance; 0 if it has none.
func (r *packedTracks) line(slot uint32) uint32 {
	if r.empty(slot) {
		return 0
	}
	return uint32(r.wordsOf(slot)[0])
}

// clear makes the track that of an entity that was never seen.
func (r *packedTracks) clear(slot uint32) {
	r.waste += int(r.of[slot].capacity)
	r.of[slot] = packedTrack{}
}

// pack stores t in a slot.
func (r *packedTracks) pack(slot uint32, t *track) {
	o := &r.of[slot]
	words := o.pack(r.words[o.at:][:0:o.capacity], t)
	if o.n = uint16(len(words)); o.n > o.capacity { // its room is too small
		r.waste += int(o.capacity)
		o.at, o.capacity = uint32(len(r.words)), o.n
		r.words = append(r.words, words...)
	}
}

// unpack fills t from a slot.
func (r *packedTracks) unpack(slot uint32, t *track) { r.of[slot].unpack(r.wordsOf(slot), t) }

// compact removes unused memory if there is much. A track keeps the room that it once needed:
// readings that come twice or late make some tracks longer now and then.
func (r *packedTracks) compact() {
	used := len(r.words) - r.waste
	if 8*(cap(r.words)-used) <= used {
		return
	}
	words := make([]uint64, 0, used)
	for i := range r.of {
		o := &r.of[i]
		from := o.at
		o.at = uint32(len(words))
		words = append(words, r.words[from:][:o.capacity]...)
	}
	r.words, r.waste = words, 0
}
