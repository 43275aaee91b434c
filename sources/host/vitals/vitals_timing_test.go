//go:build linux

package vitals

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkRead reads a node of 30 pods with two containers each (one may be the sandbox): 90
// cgroups of the live kernel, with a process in each container. The first read opens the files and
// takes several times as long as the later ones.
func BenchmarkRead(b *testing.B) {
	m := newMachine(b, Options{})
	for i := range 30 {
		pod := fmt.Sprintf("/kubepods/burstable/pod%08d-fda8-4a1c-bff9-cb1de73626a6", i)
		m.start(pod + "/" + id("a"))
		m.start(pod + "/" + id("b"))
	}
	for name, depth := range map[string]Depth{"node": Node, "memory": Memory, "pods": Pods, "containers": Containers} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				s, err := m.Read(context.Background(), depth)
				if err != nil || depth > Node && len(s.Pods) != 30 {
					b.Fatalf("%d pods, %v", len(s.Pods), err)
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
	b.Run("node", func(b *testing.B) {
		empty := newMachine(b, Options{})
		b.ReportAllocs()
		for b.Loop() {
			if _, err := empty.Read(context.Background(), Pods); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// processorTime returns the CPU time of this process. On a busy machine it is more useful than the
// elapsed time.
func processorTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
