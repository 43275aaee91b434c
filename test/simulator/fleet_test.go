package simulator

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestNewMakesWhatIsAskedFor(t *testing.T) {
	f := newFleet(t, Options{Nodes: 300, Pods: 20, Containers: 3})
	names, uids, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
	id, uid := regexp.MustCompile(`^[0-9a-f]{64}$`), regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	for _, n := range f.Nodes() {
		for _, p := range n.Pods() {
			names[p.Namespace+"/"+p.Name] = true
			uids[p.UID()] = true
			if !uid.MatchString(p.UID()) || !name.MatchString(p.Name) || len(p.Name) > 63 {
				t.Errorf("pod %s has UID %s: not as Kubernetes names them", p.Name, p.UID())
			}
			for _, c := range p.Containers {
				ids[c.ID(start)] = true
				if !id.MatchString(c.ID(start)) {
					t.Errorf("container %s has ID %s", c.Name, c.ID(start))
				}
			}
		}
	}
	if len(f.Nodes()) != 300 || len(names) != 6000 || len(uids) != 6000 || len(ids) != 18000 {
		t.Errorf("got %d nodes, %d pods, %d UIDs, %d containers; want 300, 6000, 6000, 18000", len(f.Nodes()), len(names), len(uids), len(ids))
	}
	if got, want := f.At(netip.MustParseAddr("127.1.1.0")), f.Nodes()[255]; got != want {
		t.Errorf("127.1.1.0 is node %v, want %v", got, want.Name)
	}
	for _, a := range []string{"127.1.0.0", "127.0.0.1", "127.1.1.45", "255.1.0.1"} {
		if got := f.At(netip.MustParseAddr(a)); got != nil {
			t.Errorf("%s is node %s, want none", a, got.Name)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	f := func(o Options, want string) {
		t.Helper()
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v): got error %v, want %q", o, err, want)
		}
	}
	f(Options{}, "start is not set")
	f(Options{Start: start, Nodes: -1}, "nodes is -1: want 1 to")
	f(Options{Start: start, Containers: 1001}, "containers is 1001")
	f(Options{Start: start, Faults: []Fault{{Kind: Hang, Node: "node-0002"}}}, `apply "hang node=node-0002": it concerns no node`)
	f(Options{Start: start, Faults: []Fault{{Kind: Restart, Pod: "nowhere/*"}}}, "it concerns no node, pod or container")
}

// TestNodesNeverUseMoreThanTheyHave compares the node's usage with its cores,
// second by second.
func TestNodesNeverUseMoreThanTheyHave(t *testing.T) {
	for _, o := range []Options{{Pods: 1, Containers: 1}, {Pods: 30, Cores: 2}, {Pods: 110, Containers: 4, Cores: 64}} {
		f := newFleet(t, o)
		n := f.Nodes()[0]
		last := n.CPU(start)
		for i := range 600 {
			now := start.Add(time.Duration(i+1) * time.Second)
			cpu := n.CPU(now)
			if used, most := cpu-last, int64(n.Cores)*second; used < 0 || used > most {
				t.Errorf("%+v: node used %d ns in second %d, want 0 to %d", o, used, i, most)
			}
			if m := n.Memory(now); m <= 0 || m >= n.Capacity {
				t.Errorf("%+v: node's memory is %d of %d", o, m, n.Capacity)
			}
			last = cpu
		}
	}
}

func TestSeedDecidesEverything(t *testing.T) {
	a, same := newFleet(t, Options{Seed: 5}), newFleet(t, Options{Seed: 5, Nodes: 3})
	other := newFleet(t, Options{Seed: 6})
	pa, ps, po := a.Payload("node-0001", CAdvisor, start), same.Payload("node-0001", CAdvisor, start), other.Payload("node-0001", CAdvisor, start)
	if string(pa) != string(ps) {
		t.Error("a node's numbers depend on how many others there are")
	}
	if string(pa) == string(po) {
		t.Error("two seeds give the same numbers")
	}
}

func TestPodListIsWhatIsBound(t *testing.T) {
	f := newFleet(t, Options{Pods: 6}, "restart pod=*-store-0-0 container=app at=10s for=5s")
	status := func(now time.Time) string {
		var list struct {
			Kind  string
			Items []struct {
				Metadata struct{ Name, UID string }
				Status   struct {
					Phase             string
					ContainerStatuses []struct {
						Name         string
						State        map[string]struct{ Reason string }
						LastState    map[string]struct{ ContainerID string }
						RestartCount int
						ContainerID  string
						Ready        bool
					}
				}
			}
		}
		if err := json.Unmarshal(f.Payload("node-0001", PodList, now), &list); err != nil {
			t.Fatal(err)
		}
		if list.Kind != "PodList" || len(list.Items) != 6 {
			t.Fatalf("got %s of %d, want PodList of 6", list.Kind, len(list.Items))
		}
		c := list.Items[4].Status.ContainerStatuses[0]
		id := f.Nodes()[0].Pods()[4].Containers[0].ID(now)
		if c.ContainerID != "containerd://"+id {
			t.Errorf("at %v: got container %s, want %s", now, c.ContainerID, id)
		}
		state := ""
		for s, v := range c.State {
			state = s + v.Reason
		}
		return fmt.Sprintf("%s ready=%v restarts=%d last=%d", state, c.Ready, c.RestartCount, len(c.LastState))
	}
	f1 := func(after time.Duration, want string) {
		t.Helper()
		if got := status(start.Add(after)); got != want {
			t.Errorf("after %v: got %s, want %s", after, got, want)
		}
	}
	f1(0, "running ready=true restarts=0 last=0")
	f1(12*time.Second, "waitingCrashLoopBackOff ready=false restarts=0 last=1")
	f1(20*time.Second, "running ready=true restarts=1 last=1")
}
