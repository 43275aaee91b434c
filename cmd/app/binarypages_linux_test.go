package app

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

func TestDropBinaryPages(t *testing.T) {
	before := residentFiles(t)
	if err := dropBinaryPages(); err != nil {
		t.Fatal(err)
	}
	// Running code is mapped again at once, with the pages next to it.
	if after := residentFiles(t); after > before*3/4 {
		t.Errorf("%d kB of files are resident after the binary's pages were dropped, %d kB before; want at most three quarters", after, before)
	}
}

// Pages that the dynamic linker wrote are not dropped: they would come back with the content of the
// file.
func TestOnlyRead(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fe:00 12 /opt/weir
Size:               1024 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
00500000-00600000 r--p 00100000 fe:00 12 /opt/weir
Size:               1024 kB
Anonymous:           512 kB
VmFlags: rd mr mw me ac sd
00600000-00700000 rw-p 00200000 fe:00 12 /opt/weir
Anonymous:             0 kB
00700000-00800000 r--p 00300000 fe:00 12 /opt/weir
Anonymous:             0 kB
00800000-00900000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 13 /lib/opt/weir.so
Anonymous:             0 kB
`
	got, err := onlyRead(smaps, "/opt/weir")
	want := []mapping{{0x400000, 0x500000}, {0x700000, 0x800000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %x and %v, want %x", got, err, want)
	}
	for _, bad := range []string{"", "no mapping at all\n"} {
		if got, err := onlyRead(bad, "/opt/weir"); err == nil {
			t.Errorf("%q: got %x, want an error", bad, got)
		}
	}
}

// residentFiles returns how many kB of files are resident in this process.
func residentFiles(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no RssFile in %s", status)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}
