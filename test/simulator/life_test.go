package simulator

import (
	"encoding/json"
	"testing"
	"time"
)

// lifeReport is the part of a pod in /pods that these tests read.
type lifeReport struct {
	Metadata struct {
		UID               string    `json:"uid"`
		DeletionTimestamp time.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Phase             string `json:"phase"`
		ContainerStatuses []struct {
			State map[string]struct {
				Reason   string `json:"reason"`
				ExitCode int    `json:"exitCode"`
			} `json:"state"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// readLife returns the victim in /pods at now. It returns false if /pods does
// not list it.
func readLife(t *testing.T, f *Fleet, now time.Time) (said lifeReport, ok bool) {
	t.Helper()
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(f.Append(nil, f.Nodes()[0], PodList, now), &list); err != nil {
		t.Fatal(err)
	}
	victim := victimOf(t, f).Name
	for _, item := range list.Items {
		var name struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		said = lifeReport{}
		for _, into := range []any{&name, &said} {
			if err := json.Unmarshal(item, into); err != nil {
				t.Fatal(err)
			}
		}
		if name.Metadata.Name == victim {
			return said, true
		}
	}
	return lifeReport{}, false
}

// states returns the states of the victim's containers with their reasons.
func (s *lifeReport) states() (all []string) {
	for _, c := range s.Status.ContainerStatuses {
		for name, state := range c.State {
			all = append(all, name+" "+state.Reason)
		}
	}
	return all
}

func TestPending(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "pending pod=*-store-0-0 at=30s for=1m")
	n := f.Nodes()[0]
	before, _ := readLife(t, f, after(29))
	for _, c := range []struct {
		at    float64
		phase string
		lines string
		state string
	}{
		{29, "Running", "app proxy", "running "},
		{31, "Pending", "", "waiting ContainerCreating"},
		{89, "Pending", "", "waiting ContainerCreating"},
		{92, "Running", "app proxy", "running "},
	} {
		got, _ := readLife(t, f, after(c.at))
		if got.Status.Phase != c.phase || got.states()[0] != c.state {
			t.Errorf("after %vs: got %s, %q; want %s, %q", c.at, got.Status.Phase, got.states(), c.phase, c.state)
		}
		if got := names(lines(t, f, n, Resource, after(c.at))); got != c.lines {
			t.Errorf("after %vs: got lines of %q, want %q", c.at, got, c.lines)
		}
		if (got.Metadata.UID == before.Metadata.UID) != (c.at < 30) {
			t.Errorf("after %vs: UID is %s, and was %s before", c.at, got.Metadata.UID, before.Metadata.UID)
		}
	}
	f = newFleet(t, Options{Pods: 6}, "pending pod=*-store-0-0 at=30s")
	if got, _ := readLife(t, f, after(3600)); got.Status.Phase != "Pending" || got.states()[0] != "waiting ImagePullBackOff" {
		t.Errorf("for ever: got %s, %q; want Pending, ImagePullBackOff", got.Status.Phase, got.states())
	}
	for e := range Endpoint(numEndpoints) {
		f.Append(nil, n, e, after(3600)) // no sum includes a container that never starts
	}
	if got := f.Nodes()[0].CPU(after(3600)); got < f.Nodes()[0].CPU(after(29)) {
		t.Errorf("the node's counter fell to %d", got)
	}
}

func TestFinish(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "finish pod=*-store-0-0 container=app at=30s style=failed", "finish pod=*-store-0-0 container=proxy at=60s")
	n := f.Nodes()[0]
	for _, c := range []struct {
		at     float64
		phase  string
		lines  string
		states []string
	}{
		{29, "Running", "app proxy", []string{"running ", "running "}},
		{31, "Running", "proxy", []string{"terminated Error", "running "}},
		{61, "Failed", "", []string{"terminated Error", "terminated Completed"}},
	} {
		got, _ := readLife(t, f, after(c.at))
		states := got.states()
		if got.Status.Phase != c.phase || states[0] != c.states[0] || states[1] != c.states[1] {
			t.Errorf("after %vs: got %s, %q; want %s, %q", c.at, got.Status.Phase, states, c.phase, c.states)
		}
		if got := names(lines(t, f, n, Resource, after(c.at))); got != c.lines {
			t.Errorf("after %vs: got lines of %q, want %q", c.at, got, c.lines)
		}
	}
	f = newFleet(t, Options{Pods: 6}, "finish pod=*-store-0-0 at=30s", "replace pod=*-store-0-0 at=60s for=1s")
	if got, _ := readLife(t, f, after(31)); got.Status.Phase != "Succeeded" {
		t.Errorf("got %s, want Succeeded", got.Status.Phase)
	}
	if got, _ := readLife(t, f, after(120)); got.Status.Phase != "Running" {
		t.Errorf("the pod that took its name: got %s, want Running", got.Status.Phase)
	}
}

func TestTerminate(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "terminate pod=*-store-0-0 at=30s for=1m")
	n := f.Nodes()[0]
	for _, c := range []struct {
		at       float64
		lines    string
		deleting bool
		there    bool
	}{{29, "app proxy", false, true}, {31, "", true, true}, {89, "", true, true}, {91, "", false, false}} {
		got, there := readLife(t, f, after(c.at))
		if there != c.there || got.Metadata.DeletionTimestamp.IsZero() == c.deleting {
			t.Errorf("after %vs: there %v, deleted %v; want %v, %v", c.at, there, got.Metadata.DeletionTimestamp, c.there, c.deleting)
		}
		if there && got.states()[0] != "running " {
			t.Errorf("after %vs: the API server says %q, want running still", c.at, got.states())
		}
		if got := names(lines(t, f, n, Resource, after(c.at))); got != c.lines {
			t.Errorf("after %vs: got lines of %q, want %q", c.at, got, c.lines)
		}
	}
	for _, u := range n.Truth(after(31), after(32)) {
		if u.Pod == victimOf(t, f).Name && u.Current {
			t.Errorf("truth calls %s current, which has ended", u.Container)
		}
	}
}

func TestLeap(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "leap pod=*-store-0-0 container=app by=10m at=30s", "restart pod=*-store-0-0 container=app at=60s for=1s")
	p := victimOf(t, f)
	for at, by := range map[float64]float64{29: 0, 31: 600, 59: 600, 70: 0} {
		now := after(at)
		if got, want := lines(t, f, p.Node, Resource, now)[0].cpu, float64(p.Containers[0].CPU(now)+int64(by*1e9))/1e9; got != want {
			t.Errorf("after %vs: got %v, want %v", at, got, want)
		}
	}
}

func TestTwoQoS(t *testing.T) {
	f := newFleet(t, Options{Pods: 6, Fresh: true}, "duplicate pod=*-store-0-0 at=30s for=1m style=two-qos")
	p := victimOf(t, f)
	processes := func(at float64) map[string]float64 {
		found := map[string]float64{}
		for _, m := range families(t, f.Append(nil, p.Node, CAdvisor, after(at)))["container_processes"].Metric {
			if l := labelsOf(m); l["pod"] == p.Name && l["name"] == "" {
				found[l["id"]] = m.Gauge.GetValue()
			}
		}
		return found
	}
	for at, want := range map[float64]int{29: 1, 31: 2, 91: 1} {
		got := processes(at)
		if _, real := got[p.path(false)]; len(got) != want || !real {
			t.Errorf("after %vs: got pod cgroups %v, want %d, %s among them", at, got, want, p.path(false))
		}
	}
	for _, m := range families(t, f.Append(nil, p.Node, CAdvisor, after(31)))["container_cpu_usage_seconds_total"].Metric {
		if labelsOf(m)["id"] == p.path(true) {
			t.Error("the empty cgroup has a CPU counter; the capture's had none")
		}
	}
}
