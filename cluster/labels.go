package cluster

import "slices"

// AppendLabelKey appends a key for labels. Equal labels have the same key, and different labels
// different keys.
func AppendLabelKey(key []byte, labels map[string]string) []byte {
	var array [16]string
	names := array[:0]
	for name := range labels {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		key = append(append(key, name...), 0)
		key = append(append(key, labels[name]...), 0)
	}
	return key
}
