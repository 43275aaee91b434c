package main

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

func TestDropBinaryPages(t *testing.T) {
	before := residentFiles(t)
	if err := dropBinaryPages(); err != nil {
		t.Fatal(err)
	}
	// What runs is mapped again at once, with its neighbours.
	if after := residentFiles(t); after > before*3/4 {
		t.Errorf("%d kB of files are resident after the binary's pages were dropped, %d kB before; want at most three quarters", after, before)
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
