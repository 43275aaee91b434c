package resourcemetrics

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/metric"
)

// compare orders subjects as the API server lists objects.
func (s *subject) compare(o *subject) int {
	return cmp.Or(cmp.Compare(s.namespace, o.namespace), strings.Compare(s.name, o.name))
}

// place is where a subject comes in the order of names.
type place struct {
	head uint64 // the first bytes of the name, as a number in their order
	who  int32
}

// sorted appends which of the subjects come first, second and so on: first by counting,
// into namespaces, then each of those. Most comparisons are of numbers, for strings lie
// all over the memory. There must be a subject.
func sorted(who []subject, order []int32) []int32 {
	ranks := ranksOf(who)
	begin := make([]int, len(ranks)+1) // of each namespace in the order
	eachRank(who, ranks, func(_, rank int) { begin[rank+1]++ })
	for rank := range len(ranks) {
		begin[rank+1] += begin[rank]
	}
	places, next := make([]place, len(who)), slices.Clone(begin)
	eachRank(who, ranks, func(i, rank int) {
		places[next[rank]] = place{head(who[i].name), int32(i)}
		next[rank]++
	})
	for rank := range len(ranks) {
		slices.SortFunc(places[begin[rank]:begin[rank+1]], func(a, b place) int {
			if a.head != b.head {
				return cmp.Compare(a.head, b.head)
			}
			return strings.Compare(who[a.who].name, who[b.who].name)
		})
	}
	for _, p := range places {
		order = append(order, p.who)
	}
	return order
}

// eachRank calls do for each subject with the place of its namespace among them.
func eachRank(who []subject, ranks map[metric.Namespace]int, do func(i, rank int)) {
	namespace, rank := who[0].namespace, ranks[who[0].namespace]
	for i := range who {
		if is := who[i].namespace; is != namespace {
			namespace, rank = is, ranks[is]
		}
		do(i, rank)
	}
}

// ranksOf returns which namespaces there are, each with its place among them.
func ranksOf(who []subject) map[metric.Namespace]int {
	ranks := map[metric.Namespace]int{}
	last := who[0].namespace
	ranks[last] = 0
	for i := range who {
		if is := who[i].namespace; is != last {
			ranks[is], last = 0, is
		}
	}
	for rank, name := range slices.Sorted(maps.Keys(ranks)) {
		ranks[name] = rank
	}
	return ranks
}

// head returns a number that orders names as their first eight bytes do.
func head(name string) uint64 {
	var b [8]byte
	copy(b[:], name)
	return binary.BigEndian.Uint64(b[:])
}
