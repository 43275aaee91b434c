package weirdev

import (
	"net/url"
	"strings"
)

// Parts splits an escaped path below Path. parts are the parts as received, and names the same
// parts unescaped. Compare fixed words with parts, so that an escaped word, which the API server on
// the way may read differently, does not match. ok says that the path is below Path and every part
// is a valid name.
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
