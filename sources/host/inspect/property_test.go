package inspect

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// scene is a random machine, with the facts for a second, simpler implementation of Judge.
type scene struct {
	f       *fixture
	pods    *Pods
	inside  map[string]string // the UID for each path of a pod's cgroup
	used    map[string]bool   // whether it, or a cgroup below it, has a process in some hierarchy
	touched map[string]time.Duration
}

func newScene(t *testing.T, seed uint64) *scene {
	r := rand.New(rand.NewPCG(seed, 6))
	s := &scene{f: newFixture(t, []string{"v1", "v2", "hybrid"}[r.IntN(3)]), inside: map[string]string{}, used: map[string]bool{}, touched: map[string]time.Duration{}}
	s.pods = &Pods{From: "the kubelet", At: transcript.Epoch, Static: true}
	for _, c := range "ABCDEF" {
		uid := uidOf(c)
		if r.IntN(2) == 0 {
			phase := []cluster.Phase{cluster.Running, cluster.Pending, cluster.Succeeded, cluster.Failed}[r.IntN(4)]
			p := &cluster.Pod{PodRef: metric.PodRef{Namespace: "n", Name: metric.PodName(c)}, UID: metric.PodUID(uid), Phase: phase,
				QoS: []string{"", "Guaranteed", "Burstable", "BestEffort"}[r.IntN(4)]}
			if r.IntN(4) == 0 {
				p.Deleted = transcript.Epoch
			}
			s.pods.List = append(s.pods.List, p)
		}
		under := strings.ReplaceAll(uid, "-", "_")
		for _, path := range []string{
			"/kubepods/pod" + uid, "/kubepods/burstable/pod" + uid, "/kubepods/besteffort/pod" + uid,
			"/kubepods.slice/kubepods-pod" + under + ".slice",
		} {
			if r.IntN(3) == 0 {
				s.add(r, path, uid)
			}
		}
	}
	s.f.cgroup("/system.slice/x.service", "all", "pids=1")
	s.f.cgroup("/docker/"+strings.Repeat("9", 64), "all")
	return s
}

// add creates a pod's cgroup in some hierarchies. It may have children, and a process at some depth
// in one of the hierarchies.
func (s *scene) add(r *rand.Rand, path, uid string) {
	var in []string
	for _, h := range s.f.all {
		if r.IntN(3) > 0 {
			in = append(in, h)
		}
	}
	if len(in) == 0 {
		in = s.f.all[:1]
	}
	s.inside[path] = uid
	age := time.Duration(r.IntN(180)) * time.Second
	s.touched[path] = age
	below := []string{path}
	for n := range r.IntN(3) {
		below = append(below, fmt.Sprintf("%s/%s", path, strings.Repeat(fmt.Sprint(n), 64)))
	}
	if len(below) > 1 && r.IntN(2) == 0 {
		below = append(below, below[1]+"/init.scope")
	}
	for _, p := range below {
		s.f.cgroup(p, strings.Join(in, ","))
	}
	if r.IntN(2) == 0 {
		s.used[path] = true
		s.f.cgroup(below[r.IntN(len(below))], in[r.IntN(len(in))], fmt.Sprintf("pids=%d", 100+r.IntN(50)))
	}
	for _, h := range in { // this is done last, because a new child changes the time
		s.f.cgroup(path, h, "age="+age.String())
	}
}

// mayGo is the rule in its simplest form: the UID is not listed, no process is inside, and a minute
// has passed. The caller checks credible.
func (s *scene) mayGo(path string) bool {
	for _, p := range s.pods.List {
		if string(p.UID) == s.inside[path] {
			return false
		}
	}
	return !s.used[path] && s.touched[path] >= time.Minute
}

// credible reports whether the list of pods belongs to this machine.
func (s *scene) credible() bool {
	running := false
	for _, p := range s.pods.List {
		running = running || p.Phase == cluster.Running
		for _, uid := range s.inside {
			if uid == string(p.UID) {
				return true
			}
		}
	}
	return !running && len(s.used) == 0
}

// TestCleanRemovesWhatItMay checks that Clean removes exactly what the rule allows. Nothing else
// changes, and no cgroup is removed in part.
func TestCleanRemovesWhatItMay(t *testing.T) {
	removed, kept := 0, 0
	for seed := range uint64(60) {
		s := newScene(t, seed)
		i := s.f.inspector("/")
		tree, err := i.Read()
		if err != nil {
			t.Fatal(err)
		}
		report := Judge(tree, s.pods, transcript.Epoch)
		before := s.f.directories()
		i.Clean(report)
		after := s.f.directories()
		for _, done := range report.Removals {
			if done.Failed != "" {
				t.Errorf("seed %d: %s was not removed: %s", seed, done.Path, done.Failed)
			}
		}
		for dir := range before {
			owner := ""
			for path := range s.inside {
				if at := strings.Index(dir, path); at >= 0 && (dir[at:] == path || strings.HasPrefix(dir[at:], path+"/")) {
					owner = path
				}
			}
			may := owner != "" && s.credible() && s.mayGo(owner)
			if may == after[dir] {
				t.Errorf("seed %d: %s may go: %v, is there: %v", seed, dir, may, after[dir])
			}
			if after[dir] {
				kept++
			} else {
				removed++
			}
		}
		if len(report.Pods) != len(s.inside) {
			t.Errorf("seed %d: %d cgroups of pods in the report, want %d", seed, len(report.Pods), len(s.inside))
		}
	}
	t.Logf("%d directories removed, %d kept", removed, kept)
	if removed < 100 || kept < 300 {
		t.Errorf("%d removed and %d kept: the scenes do not put the rule to the test", removed, kept)
	}
}

// TestJudgeProperties checks that a judgement does not depend on the order of the pods, and that
// without a list of pods nothing is removed.
func TestJudgeProperties(t *testing.T) {
	for seed := range uint64(30) {
		s := newScene(t, seed)
		tree, err := s.f.inspector("/").Read()
		if err != nil {
			t.Fatal(err)
		}
		first := Judge(tree, s.pods, transcript.Epoch)
		slices.Reverse(s.pods.List)
		second := Judge(tree, s.pods, transcript.Epoch)
		blind := Judge(tree, nil, transcript.Epoch)
		for n := range first.Pods {
			a, b, c := &first.Pods[n], &second.Pods[n], &blind.Pods[n]
			if a.Judgement != b.Judgement || !slices.Equal(a.Reasons, b.Reasons) {
				t.Errorf("seed %d: %s is %s (%q), and %s (%q) by the same list backwards", seed, a.Path, a.Judgement, a.Reasons, b.Judgement, b.Reasons)
			}
			if c.Removable || c.Judgement != Unknown && c.Judgement != Duplicate {
				t.Errorf("seed %d: %s is %s, removable %v, without a list of pods", seed, c.Path, c.Judgement, c.Removable)
			}
			if a.Removable != (a.Judgement == NoPod && a.KeptBecause == "") || len(a.Reasons) == 0 {
				t.Errorf("seed %d: %s is %s, removable %v, kept because %q, why %q", seed, a.Path, a.Judgement, a.Removable, a.KeptBecause, a.Reasons)
			}
		}
	}
}

// TestCleanRefusesWhatIsNotAPods checks that Clean refuses cgroups in a report that are not cgroups
// of pods.
func TestCleanRefusesWhatIsNotAPods(t *testing.T) {
	f := newFixture(t, "v1")
	f.cgroup("/system.slice/x.service", "all", "age=1h")
	f.cgroup("/kubepods/burstable", "all", "age=1h")
	f.cgroup("/a/kubepods/pod"+uidOf('A'), "all", "age=1h")
	i := f.inspector("/b")
	places := []Location{{Inode: 1}, {Inode: 1}, {Inode: 1}}
	r := &Report{}
	for _, c := range []*Cgroup{
		{Path: "/system.slice/x.service", Locations: places}, {Path: "/kubepods/burstable", Locations: places},
		{Path: metric.CgroupPath("/a/kubepods/pod" + uidOf('A')), Locations: places}, {Path: "/../kubepods/x", Locations: places},
	} {
		r.Pods = append(r.Pods, PodCgroups{Removable: true, cgroup: c})
	}
	for n, done := range i.Clean(r) {
		if done.Failed == "" || len(done.Removed) > 0 {
			t.Errorf("%s: removed in %v, failed %q; want it refused", r.Pods[n].cgroup.Path, done.Removed, done.Failed)
		}
	}
	for _, path := range []string{"/system.slice/x.service", "/kubepods/burstable", "/a/kubepods/pod" + uidOf('A')} {
		if !exists(filepath.Join(f.mount, "cpu", path)) {
			t.Errorf("%s is gone", path)
		}
	}
}
