package cgroupfs_test

import (
	"fmt"
	"testing"

	"github.com/weir-metrics/weir/sources/host/cgroupfs"
)

// FuzzParseMemoryStat checks that each figure is the number in one line of memory.stat.
func FuzzParseMemoryStat(f *testing.F) {
	f.Add("cache 1\nrss 1\ninactive_file 1\ntotal_cache 2\ntotal_rss 3\ntotal_inactive_file 1\n", false)
	f.Add("anon 3\nfile 2\nkernel 4096\ninactive_file 1\npgfault 10\n", true)
	f.Fuzz(func(t *testing.T, data string, unified bool) {
		v := cgroupfs.V1
		if unified {
			v = cgroupfs.V2
		}
		s, err := v.ParseMemoryStat([]byte(data))
		if err != nil {
			if s != (cgroupfs.MemoryStat{}) {
				t.Errorf("%q: %+v beside an error", data, s)
			}
			return
		}
		again := fmt.Sprintf("%s %d\n%s %d\n%s %d\n", v.Anonymous, s.Anonymous, v.Cache, s.Cache, v.InactiveFile, s.InactiveFile)
		if other, err := v.ParseMemoryStat([]byte(again)); other != s || err != nil {
			t.Errorf("%q: %+v, written again %+v, %v", data, s, other, err)
		}
	})
}
