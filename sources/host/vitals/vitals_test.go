//go:build linux

package vitals

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/test/transcript"
)

// checkMemory checks that a read at the depth Memory has the memory that s has, of the same pods.
func checkMemory(t *testing.T, pos string, got, s *stats.Summary) {
	t.Helper()
	of := func(s *stats.Summary) string {
		var only stats.Summary
		only.Node.SystemContainers = s.Node.SystemContainers
		for _, p := range s.Pods {
			if p.Memory != nil {
				m := *p.Memory
				m.AvailableBytes, m.PSI = nil, nil
				p.Memory = &m
			}
			only.Pods = append(only.Pods, stats.PodStats{PodRef: p.PodRef, Memory: p.Memory, VolumeStats: p.VolumeStats, EphemeralStorage: p.EphemeralStorage})
		}
		var out strings.Builder
		describe(&out, &only, false)
		return out.String()
	}
	if got, want := of(got), of(s); got != want {
		t.Errorf("%s: the depth Memory has\n%s\nwant\n%s", pos, got, want)
	}
}

// TestTranscripts prints what a Reader reads from machines of plain files. The commands:
//
//	machine v1|v2|both     a new machine; both: each command runs on a machine of each version, and their results must agree
//	cgroups                lines as in fixture.cgroup
//	file                   a line with its name, then its content; CGROUP is the directory of the memory cgroups
//	remove                 names of files or directories, one in each line
//	pods, disks            lines as in fixture.pod and fixture.disk
//	later                  simulates a long time since the last read
//	read [containers] [nodeFiles]   the result of Read, with the node's figures
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, file string) {
		var machines []*fixture
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "machine" {
				machines = nil
				for v, name := range []string{"v1", "v2"} {
					if kind := d.CmdArgs[0].Key; kind == name || kind == "both" {
						machines = append(machines, newFixture(t, v))
					}
				}
				return ""
			}
			out := do(machines[0], d)
			for _, other := range machines[1:] {
				if again := do(other, d); again != out {
					t.Errorf("%s: the versions differ: version 1 says\n%s\nversion 2 says\n%s", d.Pos, out, again)
				}
			}
			return out
		})
	})
}

func do(f *fixture, d *datadriven.TestData) string {
	pathOf := func(name string) string {
		if rest, ok := strings.CutPrefix(name, "CGROUP/"); ok {
			return f.path("memory", rest, "")
		}
		return expand(name)
	}
	switch d.Cmd {
	case "cgroups", "pods", "disks":
		add := map[string]func(string){"cgroups": f.cgroup, "pods": f.pod, "disks": f.disk}[d.Cmd]
		for _, line := range transcript.Lines(d.Input) {
			add(line)
		}
	case "file":
		name, text, _ := strings.Cut(d.Input, "\n")
		f.write(pathOf(name), text+"\n")
	case "remove":
		for _, name := range transcript.Lines(d.Input) {
			if err := os.RemoveAll(filepath.Join(f.root, pathOf(name))); err != nil {
				f.t.Fatal(err)
			}
		}
	case "later":
		f.open().mu.looked = time.Time{}
	case "read":
		depth := Pods
		if d.HasArg("containers") {
			depth = Containers
		}
		r := f.open()
		memory, _ := r.Read(context.Background(), Memory)
		s, err := r.Read(context.Background(), depth)
		checkMemory(f.t, d.Pos, memory, s)
		again, _ := r.Read(context.Background(), Memory)
		checkMemory(f.t, d.Pos, again, s)
		var out strings.Builder
		describe(&out, s, d.HasArg("node"))
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
		}
		return f.shorten(out.String())
	default:
		f.t.Fatalf("%s: no such command: %s", d.Pos, d.Cmd)
	}
	return ""
}
