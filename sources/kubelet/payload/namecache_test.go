package payload

import (
	"strconv"
	"testing"
)

func TestNamesAreFoundAgainInAnyOrder(t *testing.T) {
	var n NameCache[int]
	orders := []string{"abcd", "abcd", "dcba", "aabb", "bd", "abcd"}
	for round, order := range orders {
		n.Begin()
		for _, c := range order {
			key := []byte{byte(c)}
			name := n.Next(append(key, " rest"...))
			found := name != nil
			if !found {
				name, found = n.Find(key)
			}
			if !found {
				name.Data = int(c)
			}
			if name.Data != int(c) || name.Size() != len(key) {
				t.Fatalf("round %d: %c is %c, of %d bytes", round, c, name.Data, name.Size())
			}
			if found != (round > 0) {
				t.Fatalf("round %d: %c was found: %v", round, c, found)
			}
		}
	}
}

func TestNamesAreForgotten(t *testing.T) {
	var n NameCache[int]
	for i := range 100 {
		n.Begin()
		n.Find([]byte("steady"))
		n.Find([]byte(strconv.Itoa(i)))
		if most := keepRounds + sweepEvery + 2; len(n.byHash) > most {
			t.Fatalf("round %d: %d names are remembered, want at most %d", i, len(n.byHash), most)
		}
	}
	if _, found := n.Find([]byte("steady")); !found {
		t.Error("the name that came every round was forgotten")
	}
	name, _ := n.Find([]byte("steady"))
	n.Remove(name)
	if _, found := n.Find([]byte("steady")); found {
		t.Error("the name that was removed was found")
	}
}

func TestNamesAreBounded(t *testing.T) {
	n := NameCache[int]{Max: 3}
	n.Begin()
	for i := range 10 {
		n.Find([]byte(strconv.Itoa(i)))
	}
	if len(n.byHash) != 3 {
		t.Errorf("got %d names, want 3", len(n.byHash))
	}
	if _, found := n.Find([]byte("9")); found {
		t.Error("a name beyond the bound was remembered")
	}
	if _, found := n.Find([]byte("1")); !found {
		t.Error("a name within the bound was forgotten")
	}
}
