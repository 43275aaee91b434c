//go:build linux

package disk

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
)

// BenchmarkTree counts a tree of 50,500 files and directories, and compares the time with du.
func BenchmarkTree(b *testing.B) {
	dir := b.TempDir()
	const files = 100*500 + 500 + 1
	for i := range 500 {
		for k := range 100 {
			write(b, 0, dir, fmt.Sprintf("dir-%d/file-%d", i, k))
		}
	}
	b.Run("weir", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if u, err := countTree(context.Background(), dir, newPace(1)); err != nil || u.inodes != files {
				b.Fatalf("du = %+v, %v, want %d inodes", u, err, files)
			}
		}
		b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
	})
	b.Run("du", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("du", "-s", "-x", dir).Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(files)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
	})
}

// BenchmarkFindLayers measures what the scans of all pods share: the mount table and the cgroups of
// this machine's processes.
func BenchmarkFindLayers(b *testing.B) {
	for b.Loop() {
		if _, err := findLayers("/proc", "/"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefresh scans 100 pods with 60 files each.
func BenchmarkRefresh(b *testing.B) {
	n := newNode(b)
	for i := range 100 {
		uid := fmt.Sprintf("11111111-1111-4111-8111-%012d", i)
		for k := range 58 {
			write(b, 10, n.path("/var/lib/kubelet/pods", uid, "volumes/kubernetes.io~empty-dir/cache", fmt.Sprint(k)))
		}
		write(b, 10, n.path("/var/lib/kubelet/pods", uid, "etc-hosts"))
		write(b, 10, n.path("/var/log/pods/shop_web_"+uid, "app/0.log"))
	}
	s := newScanner(b, n.options())
	for b.Loop() {
		s.Refresh(context.Background())
	}
	if len(s.mu.pods) != 100 {
		b.Fatalf("%d pods, want 100", len(s.mu.pods))
	}
}
