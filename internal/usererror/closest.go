package usererror

import "strings"

// Closest returns the known name that is most similar to name, if it is similar enough: at most one
// letter in three is wrong, missing, added or swapped with its neighbour. It ignores case. The
// first of equally similar names wins.
func Closest(name string, known []string) (string, bool) {
	best, at := len(name)/3+1, -1
	for i, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < best {
			best, at = d, i
		}
	}
	if at < 0 || name == "" {
		return "", false
	}
	return known[at], true
}

// distance is the optimal string alignment distance in bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
