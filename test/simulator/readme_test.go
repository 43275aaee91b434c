package simulator

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestReadme checks that the table of faults has every kind and style, and no
// other.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+)(?: style=([a-z-]+))?` \\| `").FindAllStringSubmatch(string(b), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	var want []string
	for k := range Kind(numKinds) {
		if k != Duplicate {
			want = append(want, k.String()+" ")
			continue
		}
		for _, s := range stylesOf[k] {
			want = append(want, k.String()+" "+s.String())
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("README.md has the faults %q, want %q", got, want)
	}
}
