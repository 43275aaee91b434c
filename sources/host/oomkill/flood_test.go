//go:build linux

package oomkill_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weir-metrics/weir/sources/host/oomkill"
)

// podOf returns the cgroup of a pod, and those of two containers.
func podOf(i int) (pod, first, second string) {
	pod = fmt.Sprintf("%s/pod%08d-1111-1111-1111-111111111111", burstable, i)
	return pod, pod + "/" + app, pod + "/" + side
}

// TestFloodOfKills has the kernel kill a thousand times in a minute on a node with 110 pods: half of the
// containers end and start again. All are found and named, and the kill of a quiet pod in time.
func TestFloodOfKills(t *testing.T) {
	log, write := newLog(t)
	n := newNode(t, true, log)
	n.start(kubepods, burstable, api, api+"/"+app)
	var containers []string
	for i := range 110 {
		pod, first, second := podOf(i)
		n.start(pod, first, second)
		containers = append(containers, first)
	}
	n.pass(time.Second)
	kills, found, quiet := 0, uint64(0), time.Duration(-1)
	for look := range 260 {
		for ; look < 240 && kills < 1000*(look+1)/240; kills++ {
			i := kills % len(containers)
			c := containers[i]
			n.kill(c, c, 1)
			write(chosen(c, c, "java", 1000+kills))
			write(dead("java", 1000+kills))
			if kills%2 == 0 {
				n.remove(c)
				containers[i] = filepath.Join(filepath.Dir(c), fmt.Sprintf("%064x", kills+1))
				n.start(containers[i])
			}
		}
		if look == 120 {
			n.kill(api+"/"+app, api, 1)
			n.remove(api + "/" + app)
			write(chosen(api, api+"/"+app, "quiet", 1))
		}
		all, err := n.watcher.Look(n.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all {
			found += k.New
			if k.Process == nil {
				t.Fatalf("look %d: %+v has no name", look, k)
			}
			if k.Process.Name == "quiet" {
				quiet = time.Duration(look-120) * oomkill.Interval
			}
		}
		n.now = n.now.Add(oomkill.Interval)
	}
	if found != 1001 || quiet < 0 || quiet > 2*time.Second {
		t.Errorf("%d of 1,001 kills were found, that of the quiet pod after %v", found, quiet)
	}
}

// scanAllocations counts what a read of all pods allocates.
func (n *node) scanAllocations() float64 {
	return testing.AllocsPerRun(5, func() {
		n.now = n.now.Add(time.Minute)
		if _, err := n.watcher.Look(n.now); err != nil {
			n.t.Fatal(err)
		}
	})
}

// TestBombInAPod makes a thousand cgroups in a container, in some of which the kernel kills, and has 400
// pods come, be killed and go. A read of all pods costs as much as before, and nothing of the pods
// that went is kept.
func TestBombInAPod(t *testing.T) {
	n := newNode(t, true, nil)
	pod, first, second := podOf(0)
	n.start(kubepods, burstable, pod, first, second)
	n.pass(time.Second)
	before := n.scanAllocations()
	for i := range 1000 {
		if err := os.MkdirAll(filepath.Join(n.dir, first, fmt.Sprint("bomb-", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n.kill(first, first, 500)
	if got := n.pass(2 * time.Second); len(got) != 1 {
		t.Errorf("got %q, want one kill of processes in the container", got)
	}
	if after := n.scanAllocations(); after > before+2 {
		t.Errorf("a scan allocates %v times with 1,000 cgroups in a container, and %v without", after, before)
	}
	var heap [2]runtime.MemStats
	for round := range 4 {
		if round == 1 {
			runtime.GC()
			runtime.ReadMemStats(&heap[0])
		}
		for i := range 100 {
			pod, container, _ := podOf(1 + 100*round + i)
			n.start(pod, container)
			n.kill(container, container, 1)
		}
		if got := n.pass(2 * time.Second); len(got) != 100 {
			t.Fatalf("round %d: %d kills were found, want 100", round, len(got))
		}
		for i := range 100 {
			pod, _, _ := podOf(1 + 100*round + i)
			n.remove(pod)
		}
		n.pass(10 * time.Second)
	}
	runtime.GC()
	runtime.ReadMemStats(&heap[1])
	if grown := int64(heap[1].HeapAlloc) - int64(heap[0].HeapAlloc); grown > 128<<10 {
		t.Errorf("300 pods came and went, and %d KiB are kept", grown>>10)
	}
	if after := n.scanAllocations(); after > before+2 {
		t.Errorf("a scan allocates %v times when the pods are gone, and %v before they came", after, before)
	}
}
