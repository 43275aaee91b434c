package simulator

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestScrapeError(t *testing.T) {
	f := newFleet(t, Options{Nodes: 2}, "scrapeerror node=node-0001 at=10s for=10s")
	if got := f.Payload("node-0001", Resource, after(11)); !strings.HasSuffix(string(got), "\nresource_scrape_error 1\n") || bytes.Contains(got, []byte("container_")) {
		t.Errorf("/metrics/resource: got %q", got)
	}
	for _, m := range families(t, f.Payload("node-0001", CAdvisor, after(11))) {
		if !strings.HasPrefix(m.GetName(), "machine_") {
			t.Errorf("/metrics/cadvisor has %s, want the machine only", m.GetName())
		}
	}
	if got := f.Payload("node-0001", Summary, after(11)); json.Valid(got) {
		t.Errorf("/stats/summary is sane: %.100q", got)
	}
	if !json.Valid(f.Payload("node-0001", PodList, after(11))) || !json.Valid(f.Payload("node-0001", Summary, after(21))) || !json.Valid(f.Payload("node-0002", Summary, after(11))) {
		t.Error("/pods, another node or the time after is concerned too")
	}
}

func TestNodeObjects(t *testing.T) {
	f := newFleet(t, Options{Nodes: 3}, "notready node=node-0001 at=10s", "noaddress node=node-0002 at=10s", "unlisted node=node-0003 at=10s for=5s")
	type object struct {
		Status struct {
			Conditions []struct{ Type, Status string }
			Addresses  []struct{ Type, Address string }
		}
	}
	nodeAt := func(node int, at float64) (o object) {
		t.Helper()
		if err := json.Unmarshal(f.Nodes()[node].AppendObject(nil, 10250, after(at)), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if before, later := nodeAt(0, 9), nodeAt(0, 11); before.Status.Conditions[0].Status != "True" || later.Status.Conditions[0].Status != "Unknown" {
		t.Errorf("ready: got %v, then %v; want True, then Unknown", before.Status.Conditions, later.Status.Conditions)
	}
	if before, later := nodeAt(1, 9), nodeAt(1, 11); len(before.Status.Addresses) != 2 || len(later.Status.Addresses) != 0 {
		t.Errorf("addresses: got %v, then %v; want two, then none", before.Status.Addresses, later.Status.Addresses)
	}
	for at, want := range map[float64]bool{9: true, 11: false, 16: true} {
		if got := f.Nodes()[2].Listed(after(at)); got != want {
			t.Errorf("after %vs: listed %v, want %v", at, got, want)
		}
	}
}

func TestImpostorMustBeAnother(t *testing.T) {
	for text, want := range map[string]bool{
		"impostor node=node-0001 as=node-0002": true,
		"impostor node=node-0001 as=node-0001": false,
		"impostor node=node-0001 as=nobody":    false,
	} {
		fault, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{Nodes: 2, Start: start, Faults: []Fault{fault}}); (err == nil) != want {
			t.Errorf("%s: got error %v, accepted should be %v", text, err, want)
		}
	}
}
