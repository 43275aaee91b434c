package rate

import "github.com/weir-metrics/weir/metric"

// packedTracks are the packed tracks of a source, by slot. Their words are contiguous, in the
// order of the report, which is also the order of use. A source comes back after seconds, when
// none of this is in the processor's caches, and memory that is read in order is prefetched.
type packedTracks struct {
	list  []packedTrack
	words []uint64
	waste int // words that no track uses any more
}

// follow makes room for each slot of t, and clears the tracks of freed slots.
func (p *packedTracks) follow(t *metric.SlotTable) {
	for _, slot := range t.Freed() {
		if slot < p.len() {
			p.clear(slot)
		}
	}
	p.list = metric.BySlot(t, p.list)
}

// len returns a number larger than every slot.
func (p *packedTracks) len() uint32 { return uint32(len(p.list)) }

func (p *packedTracks) empty(slot uint32) bool { return p.list[slot].empty() }

func (p *packedTracks) wordsOf(slot uint32) []uint64 {
	o := &p.list[slot]
	return p.words[o.at:][:o.n]
}

// line returns the line of the instance; 0 if it has none.
func (p *packedTracks) line(slot uint32) uint32 {
	if p.empty(slot) {
		return 0
	}
	return uint32(p.wordsOf(slot)[0])
}

// clear makes the track that of an entity that was never seen.
func (p *packedTracks) clear(slot uint32) {
	p.waste += int(p.list[slot].capacity)
	p.list[slot] = packedTrack{}
}

// pack stores t in a slot.
func (p *packedTracks) pack(slot uint32, t *track) {
	o := &p.list[slot]
	words := o.pack(p.words[o.at:][:0:o.capacity], t)
	if o.n = uint16(len(words)); o.n > o.capacity { // its room is too small
		p.waste += int(o.capacity)
		o.at, o.capacity = uint32(len(p.words)), o.n
		p.words = append(p.words, words...)
	}
}

// unpack fills t from a slot.
func (p *packedTracks) unpack(slot uint32, t *track) { p.list[slot].unpack(p.wordsOf(slot), t) }

// compact removes unused memory if there is much. A track keeps the room that it once needed:
// readings that come twice or late make some tracks longer now and then.
func (p *packedTracks) compact() {
	used := len(p.words) - p.waste
	if 8*(cap(p.words)-used) <= used {
		return
	}
	words := make([]uint64, 0, used)
	for i := range p.list {
		o := &p.list[i]
		from := o.at
		o.at = uint32(len(words))
		words = append(words, p.words[from:][:o.capacity]...)
	}
	p.words, p.waste = words, 0
}
