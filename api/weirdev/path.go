package weirdev

import (
	"net/url"
	"strings"
)

// Parts returns the parts of an escaped path below Path: as they came, which is how
// fixed words are to be compared, so that nothing is read here that others on the way
// read in another way; and as the names they stand for. ok is whether the path is below
// Path and every part is a name.
func Parts(escaped string) (parts, names []string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, Path)
	if !ok {
		return nil, nil, false
	}
	parts = strings.Split(rest, "/")
	names = make([]string, len(parts))
	for i := range parts {
		name, err := url.PathUnescape(parts[i])
		if err != nil || name == "" || name == "." || name == ".." {
			return nil, nil, false
		}
		names[i] = name
	}
	return parts, names, true
}
