package inspect

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/informer"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/host/cgroupfs"
	"github.com/weir-metrics/weir/sources/host/podcgroup"
	"github.com/weir-metrics/weir/test/capture"
)

// TestCaptures judges the captured cgroups of a real node in known situations, with the pods of its
// API server at that time. Each line is a judgement other than live, with its rounds.
func TestCaptures(t *testing.T) {
	datadriven.RunTest(t, "testdata/captures.txt", func(t *testing.T, d *datadriven.TestData) string {
		rounds := capture.Glob(t, d.Cmd+"/[0-9][0-9]")
		if len(rounds) == 0 {
			t.Fatalf("no rounds of %s", d.Cmd)
		}
		var order []string
		seen := map[string][]string{}
		for _, round := range rounds {
			tree := capturedTree(t, round)
			pods := capturedPods(t, round, tree.Ended)
			report := Judge(tree, pods, tree.Ended)
			for _, line := range notLive(report) {
				if seen[line] == nil {
					order = append(order, line)
				}
				seen[line] = append(seen[line], filepath.Base(round))
			}
		}
		var out strings.Builder
		for _, line := range order {
			fmt.Fprintf(&out, "%s\n  in %s\n", line, strings.Join(seen[line], " "))
		}
		return out.String()
	})
}

// notLive returns the judgements other than live, without the parts that differ between rounds.
func notLive(r *Report) (lines []string) {
	for i := range r.Pods {
		p := &r.Pods[i]
		if p.Judgement != Live {
			removable := ""
			if p.Removable {
				removable = ", can be removed"
			}
			lines = append(lines, fmt.Sprintf("%s %s (%s): %s%s", p.Judgement, p.Path, p.PodName(), p.Reasons[0], removable))
		}
		for k := range p.Containers {
			if c := &p.Containers[k]; c.Judgement != Live && c.Judgement != p.Judgement {
				lines = append(lines, fmt.Sprintf("%s %s (%s): %s", c.Judgement, c.Path, p.PodName(), c.Reasons[0]))
			}
		}
	}
	return lines
}

func capturedTree(t *testing.T, round string) *Tree {
	t.Helper()
	var list []struct {
		ID    string  `json:"id"`
		At    int64   `json:"t_ns"`
		Procs int     `json:"procs"`
		Made  float64 `json:"cpu_dir_mtime"`
	}
	if err := json.Unmarshal(capture.Read(t, filepath.Join(round, "cgroups.json")), &list); err != nil {
		t.Fatal(err)
	}
	tree := &Tree{Under: "/", Hierarchies: cgroupfs.Hierarchies{{Name: "cpu"}}}
	pods := map[metric.PodUID]map[podcgroup.QoS]*Cgroup{}
	for _, e := range list {
		tree.Ended = time.Unix(0, e.At)
		whole, part := math.Modf(e.Made)
		made := time.Unix(int64(whole), int64(part*1e9))
		c := &Cgroup{Path: metric.CgroupPath(e.ID), Locations: []Location{{}}, ForeignProcesses: e.Procs, EarliestModified: made, LatestModified: made}
		c.Ref = podcgroup.Parse(c.Path)
		switch c.Kind {
		case podcgroup.Pod:
			tree.Pods = append(tree.Pods, c)
			if pods[c.UID] == nil {
				pods[c.UID] = map[podcgroup.QoS]*Cgroup{}
			}
			pods[c.UID][c.QoS] = c
		case podcgroup.Container: // its pod is earlier in the list
			pod := pods[c.UID][c.QoS]
			pod.Containers = append(pod.Containers, c)
			pod.ForeignProcesses += e.Procs
		}
	}
	return tree
}

func capturedPods(t *testing.T, round string, at time.Time) *Pods {
	t.Helper()
	facts, err := informer.FactsFromPods(capture.Read(t, filepath.Join(round, "pods.json")), at)
	if err != nil {
		t.Fatal(err)
	}
	pods := &Pods{From: "the API server", At: at}
	facts.EachPod(func(p *cluster.Pod) bool {
		if p.Node == "node1" {
			pods.List = append(pods.List, p)
		}
		return true
	})
	return pods
}
