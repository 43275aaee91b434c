package shared

import "hash/fnv"

// owner returns the name of the member that owns a node; empty if there are no members. The method
// is highest random weight hashing: Thaler and Ravishankar, "Using name-based mappings to increase
// hit rates", 1998.
func owner(members []Member, node string) (name string) {
	var most uint64
	for i := range members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(members[i].Name))
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(node))
		if w := mix(h.Sum64()); name == "" || w > most || w == most && members[i].Name > name {
			most, name = w, members[i].Name
		}
	}
	return name
}

// mix spreads changes of the last bytes over all bits, which FNV does not do. It is the finalizer
// of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
