package simulator

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkAppend writes one node's answers. The node has 30 pods of 2
// containers, as in the benchmarks of the pipeline.
func BenchmarkAppend(b *testing.B) {
	for e := range Endpoint(numEndpoints) {
		for _, fresh := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v/fresh=%v", e, fresh), func(b *testing.B) {
				f := newFleet(b, Options{Nodes: 2, Fresh: fresh})
				var buf []byte
				now := start
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(15 * time.Second)
					buf = f.Append(buf[:0], f.Nodes()[0], e, now)
				}
				b.SetBytes(int64(len(buf)))
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		newFleet(b, Options{Nodes: 1000})
	}
}

func BenchmarkTruth(b *testing.B) {
	f := newFleet(b, Options{Nodes: 100})
	b.ReportAllocs()
	for b.Loop() {
		f.Truth(start, start.Add(time.Minute))
	}
}
