//go:build linux

package vitals

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkingSets checks that the pods' working set is that of a Read, and the node's that of
// meminfo, with both versions of cgroups.
func TestWorkingSets(t *testing.T) {
	for v := range versions {
		f := newFixture(t, v)
		r, err := New(Options{Mount: filepath.Join(f.root, "cgroup"), Proc: filepath.Join(f.root, "proc")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		w := r.WorkingSets()
		is := func(what string, read func() (int64, error), want int64) {
			t.Helper()
			if got, err := read(); got != want || err != nil {
				t.Errorf("version %d: %s = %d, %v; want %d", v+1, what, got, err, want)
			}
		}
		fails := func(what string, read func() (int64, error), want error) {
			t.Helper()
			if got, err := read(); err == nil || want != nil && !errors.Is(err, want) {
				t.Errorf("version %d: %s = %d, %v; want the error %v", v+1, what, got, err, want)
			}
		}
		fails("pods without a cgroup", w.Pods, nil)
		r.mu.looked = r.mu.looked.Add(-rootSearchInterval) // this simulates that the interval has passed
		f.cgroup("/kubepods usage=20Mi anon=2Mi inactive=4Mi limit=64Mi")
		is("pods", w.Pods, 16<<20)
		s, err := r.Read(t.Context(), Pods)
		if err != nil || len(s.Node.SystemContainers) != 1 || *s.Node.SystemContainers[0].Memory.WorkingSetBytes != 16<<20 {
			t.Errorf("version %d: a Read has %+v, %v; want the same", v+1, s.Node.SystemContainers, err)
		}
		f.cgroup("/kubepods usage=1Mi anon=1Mi inactive=4Mi")
		is("pods with more inactive than used", w.Pods, 0)
		is("node, of AnonPages + Cached + Buffers - Inactive(file)", w.Node, (10+20+1-4)<<20)
		f.write("proc/meminfo", "MemTotal: 102400 kB\nCached: 1 kB\n")
		fails("unavailable without MemAvailable", w.Unavailable, nil)
		fails("node without AnonPages", w.Node, nil)
		f.write("proc/meminfo", "MemTotal: 8 kB\nMemFree: 1 kB\nMemAvailable: 5 kB\nSwapTotal: 9 kB\nSwapFree: 2 kB\n")
		is("unavailable", w.Unavailable, 3<<10)
		is("swap", w.Swap, 7<<10)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		fails("pods after Close", w.Pods, os.ErrClosed)
		fails("node after Close", w.Node, os.ErrClosed)
	}
}

// TestWorkingSetOfOneOfTwoRoots checks that of two kubepods cgroups the one whose pods have processes counts, as in a
// Read, and none if both have such pods.
func TestWorkingSetOfOneOfTwoRoots(t *testing.T) {
	for v := range versions {
		f := newFixture(t, v)
		f.cgroup("/kubepods usage=20Mi anon=2Mi inactive=4Mi")
		f.cgroup("/kubepods/pod{C} usage=0Mi anon=0Mi") // of a kubelet that had the other driver
		f.cgroup("/kubepods.slice usage=30Mi anon=2Mi inactive=4Mi")
		f.cgroup("/kubepods.slice/kubepods-pod{A}.slice usage=2Mi anon=1Mi procs=7")
		r := f.open()
		w := r.WorkingSets()
		if got, err := w.Pods(); got != 26<<20 || err != nil {
			t.Errorf("version %d: pods = %d, %v; want those of kubepods.slice", v+1, got, err)
		}
		all := read(t, r, Pods).Node.SystemContainers
		if len(all) != 1 || *all[0].Memory.WorkingSetBytes != 26<<20 {
			t.Errorf("version %d: a Read has %+v for all pods; want those of kubepods.slice", v+1, all)
		}
		f.cgroup("/kubepods/pod{B} usage=2Mi anon=1Mi procs=8")
		if _, pods := r.Cgroups(); pods != "" {
			t.Errorf("version %d: %s of two with pods", v+1, pods)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLiveWorkingSets checks that the working sets are those of a Read on the live kernel, also
// after the cgroup of the pods was created again.
func TestLiveWorkingSets(t *testing.T) {
	m := newMachine(t, Options{})
	w := m.WorkingSets()
	t.Cleanup(func() { w.Close() })
	for range 2 {
		m.mu.looked = m.mu.looked.Add(-rootSearchInterval) // this simulates that the interval has passed
		end := m.start("/kubepods/pod" + uid)
		var got, want int64
		for range 50 { // the kernel may return cached pages at any time
			var err error
			if got, err = w.Pods(); err != nil {
				t.Fatal(err)
			}
			if want = int64(*read(t, m.Reader, Pods).Node.SystemContainers[0].Memory.WorkingSetBytes); got == want && got > 0 {
				break
			}
		}
		if got != want || got == 0 {
			t.Errorf("pods = %d, want %d as in a Read", got, want)
		}
		end()
		m.rmdir("/kubepods/pod" + uid)
		m.rmdir("/kubepods")
	}
	const slack = 4 << 20
	for range 50 { // one success is enough: memory changes by megabytes
		got, err := w.Node()
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(Options{}) // of the whole machine
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Read(t.Context(), Node)
		r.Close()
		if want := int64(*s.Node.Memory.WorkingSetBytes); err == nil && got > want-slack && got < want+slack {
			return
		}
	}
	t.Error("in none of 50 tries is the node's working set that of a Read")
}

// BenchmarkWorkingSets measures one poll of the live kernel, and for comparison the same figures
// from the root cgroup.
func BenchmarkWorkingSets(b *testing.B) {
	r, err := New(Options{})
	if err != nil {
		b.Skip(err)
	}
	defer r.Close()
	w := r.WorkingSets()
	defer w.Close()
	b.Run("meminfo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Node(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unavailable", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Unavailable(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("swap", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Swap(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("root cgroup", func(b *testing.B) {
		b.ReportAllocs()
		files, dir := fileReader{buffer: make([]byte, initialBuffer)}, openFile{name: filepath.Join(r.memoryDir, "memory.stat")}
		defer dir.close()
		for b.Loop() {
			data, err := files.read(&dir, unix.AT_FDCWD)
			if err == nil {
				_, err = r.version.ParseMemoryStat(data)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pods", func(b *testing.B) {
		if _, pods := r.Cgroups(); pods == "" {
			b.Skip("there is no cgroup of all pods")
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := w.Pods(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
