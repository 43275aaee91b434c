//go:build linux

package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func turnOf(program string, round int, values map[string]float64) Turn {
	return Turn{Scenario: staticScenario, Program: program, Round: round, Values: values, Requests: map[string][]float64{}}
}

// TestRows checks medians of rounds, worst values where these count, and
// quantiles over the requests of all rounds.
func TestRows(t *testing.T) {
	one, two := turnOf(weirName, 1, map[string]float64{"cpu": 600, "lag": 1.1, "rate error": 0, "age": 90, "rss": 200}),
		turnOf(weirName, 2, map[string]float64{"cpu": 700, "lag": 1.3, "rate error": 1e-9, "age": 960, "rss": 250})
	one.Requests["list json"], two.Requests["list json"] = []float64{10, 20}, []float64{30, 40}
	peer := turnOf(peerName, 1, map[string]float64{"cpu": 1300, "lag": 1.4, "rss": 500})
	peer.Requests["list json"] = []float64{400}
	turns := []Turn{one, two, peer, turnOf(plainName, 1, map[string]float64{"cpu": 500})}
	other := turnOf(weirName, 1, map[string]float64{"cpu": 9999})
	other.Scenario = churnScenario
	table := map[string]row{}
	for _, r := range rows(append(turns, other), staticScenario) {
		table[r.title] = r
	}
	f := func(title string, weir, peer float64, holds string) {
		t.Helper()
		r, ok := table[title]
		if !ok || r.weir != weir || r.peer != peer && !(math.IsNaN(r.peer) && math.IsNaN(peer)) || r.holds() != holds {
			t.Errorf("%s: got %v and %v, which holds: %q; want %v and %v, %q", title, r.weir, r.peer, r.holds(), weir, peer, holds)
		}
	}
	f("CPU per node-scrape", 650, 1300, "yes")
	f("the same over the plain fetch floor", 1.3, 2.6, "NO")
	f("resident, steady, weir's 15 min of history full", 250, 500, "yes")
	f("oldest sample served, behind its node's newest", 1.3, 1.4, "NO")
	f("largest relative error of a rate", 1e-9, math.NaN(), "yes")
	f("LIST all pods, JSON, p50", 20, 400, "yes")
	f("LIST all pods, JSON, p99", 40, 400, "")
	if got := table["CPU per node-scrape"].ratio(); got != 0.5 {
		t.Errorf("ratio of CPU: got %v, want 0.5", got)
	}
	young := rows([]Turn{one, peer}, staticScenario)
	if !slices.ContainsFunc(young, func(r row) bool { return r.title == "resident, steady, history not yet full" && r.weir == 200 }) {
		t.Errorf("no row says that a young weir is young: %+v", young)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234.5: "1234", 99.94: "99.9", 1.2: "1.2", 0.12345: "0.123", 1e-6: "1.0e-06", 0.65: "0.65", 1. / 3: "0.333"} {
		if got := number(v); got != want {
			t.Errorf("%v: got %q, want %q", v, got, want)
		}
	}
}

func TestRender(t *testing.T) {
	r := Result{
		Machine: Machine{CPU: "Some CPU", Cores: 2, Programs: map[string]string{weirName: "v1", peerName: "v0.9.0"}}, Options: defaults(),
		Turns: []Turn{turnOf(weirName, 1, map[string]float64{"cpu": 600}), turnOf(peerName, 1, map[string]float64{"cpu": 1200})},
	}
	for name, want := range map[string]struct {
		as   style
		line string
	}{
		"plain":    {plain, "CPU per node-scrape  µs    600   1200            0.5    ratio ≤ 0.65  yes\n"},
		"markdown": {markdown, "| CPU per node-scrape | µs | 600 | 1200 | 0.5 | ratio ≤ 0.65 | yes |\n"},
	} {
		got := r.render(want.as)
		if !strings.Contains(got, want.line) {
			t.Errorf("%s: no line %q in\n%s", name, want.line, got)
		}
		if strings.Contains(got, churnScenario) {
			t.Errorf("%s: a table of what was not measured:\n%s", name, got)
		}
	}
}
