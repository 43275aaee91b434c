package notify

import (
	"fmt"
	"testing"
)

// memoryStat is a memory.stat as long as the kernel's in version 1.
var memoryStat = func() (b []byte) {
	for i := range 50 {
		b = fmt.Appendf(b, "some_figure_%d %d\n", i, i*123456)
	}
	return append(b, "total_inactive_file 2624245760\ntotal_active_file 5\ntotal_unevictable 0\n"...)
}()

func BenchmarkInactiveFile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if n, err := parseInactiveFile(memoryStat); n != 2624245760 || err != nil {
			b.Fatal(n, err)
		}
	}
}
