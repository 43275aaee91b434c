package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/transcript"
)

// at returns a time of the scripts below, in seconds.
func at(seconds int) time.Time { return transcript.Epoch.Add(time.Duration(seconds) * time.Second) }

// TestAgreement plays rounds of weir and changes of a controller. maxSkew is 30 s, and weir's
// memory is complete from the start unless the case says otherwise.
func TestAgreement(t *testing.T) {
	type play struct {
		*comparer
		found []string
	}
	note := func(p *play, cs []comparison) {
		for _, c := range cs {
			p.found = append(p.found, strings.TrimPrefix(c.String(), c.At.UTC().Format(time.RFC3339)+" "))
		}
	}
	saw := func(p *play, s int, current, desired int32) {
		note(p, p.addDecision(ownDecision{At: at(s), Current: current, Desired: desired, Decided: true, Targets: "cpu: 90%/50%"}))
	}
	changed := func(p *play, s int, from, to, ours int32) {
		note(p, p.addChange(controllerChange{At: at(s), From: from, To: to, Targets: "cpu: 90%/50%"},
			ownDecision{At: at(s), Current: from, Desired: ours, Decided: true, Targets: "cpu: 90%/50%"}))
	}
	f := func(name string, script func(p *play), want ...string) {
		t.Helper()
		p := &play{comparer: &comparer{maxSkew: 30 * time.Second, memoryFull: at(0)}}
		script(p)
		if got := strings.Join(p.found, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, strings.Join(want, "\n"))
		}
	}

	f("on the same state, at the same moment", func(p *play) {
		saw(p, 0, 3, 3)
		changed(p, 10, 3, 5, 5)
	}, "agreed: 3 to 5, weir 5")
	f("in the round before", func(p *play) {
		saw(p, 0, 3, 5)
		changed(p, 10, 3, 5, 6)
	}, "agreed: 3 to 5, weir 5")
	f("a little later, when weir has read what the controller had", func(p *play) {
		saw(p, 0, 3, 3)
		changed(p, 10, 3, 5, 3)
		saw(p, 15, 5, 5)
		note(p, p.recheckChange(p.unmatchedChanges()[0], ownDecision{At: at(15), Current: 3, Desired: 5, Decided: true}))
		saw(p, 60, 5, 5)
	}, "agreed: 3 to 5, weir 5")
	f("too late", func(p *play) {
		changed(p, 10, 3, 5, 3)
		note(p, p.recheckChange(p.unmatchedChanges()[0], ownDecision{At: at(45), Current: 3, Desired: 5, Decided: true}))
		saw(p, 46, 5, 5)
	}, "differed: 3 to 5, weir 3, NoChange")
	f("another count", func(p *play) {
		changed(p, 10, 3, 5, 7)
		saw(p, 41, 5, 7)
	}, "differed: 3 to 5, weir 7, Count")
	f("the other way", func(p *play) {
		changed(p, 10, 3, 5, 2)
		saw(p, 41, 5, 5)
	}, "differed: 3 to 5, weir 2, Opposite")
	f("a round on another count proves nothing", func(p *play) {
		saw(p, 0, 4, 5)
		changed(p, 10, 3, 5, 3)
		saw(p, 60, 5, 5)
	}, "differed: 3 to 5, weir 3, NoChange")
	f("a proposal that is followed in time", func(p *play) {
		saw(p, 0, 3, 5)
		saw(p, 15, 3, 5)
		changed(p, 25, 3, 5, 5)
		saw(p, 30, 5, 5)
		saw(p, 60, 5, 5)
	}, "agreed: 3 to 5, weir 5")
	f("a proposal that passes", func(p *play) {
		saw(p, 0, 3, 5)
		saw(p, 15, 3, 5)
		saw(p, 30, 3, 3)
		saw(p, 45, 3, 5)
		saw(p, 75, 3, 5)
	})
	f("a proposal that is never followed is told once", func(p *play) {
		for s := 0; s <= 90; s += 15 {
			saw(p, s, 3, 5)
		}
	}, "differed: 3 to 3, weir 5, NotFollowed")
	f("a proposal that turns", func(p *play) {
		saw(p, 0, 3, 5)
		saw(p, 15, 3, 2)
		saw(p, 31, 3, 2)
	})
	f("weir has not watched for as long as the controller", func(p *play) {
		p.memoryFull = at(300)
		changed(p, 10, 5, 3, 5)
		changed(p, 20, 3, 6, 3)
		saw(p, 60, 6, 6)
	}, "undecided: 5 to 3, weir 5, WarmingUp", "differed: 3 to 6, weir 3, NoChange")
	f("without metrics", func(p *play) {
		note(p, p.addChange(controllerChange{At: at(10), From: 3, To: 5}, ownDecision{At: at(10), Current: 3}))
		saw(p, 60, 5, 5)
	}, "differed: 3 to 5, weir 3, NoDecision: the controller saw nothing, weir nothing; weir: "[:len("differed: 3 to 5, weir 3, NoDecision")])

	f("metrics that weir has not, and the controller has", func(p *play) {
		for s := 0; s <= 60; s += 15 {
			note(p, p.addDecision(ownDecision{At: at(s), Current: 3, Desired: 3, MetricsMissing: true}))
		}
	}, "differed: 3 to 3, weir 3, NoDecision")
	f("metrics that neither has", func(p *play) {
		for s := 0; s <= 60; s += 15 {
			note(p, p.addDecision(ownDecision{At: at(s), Current: 3, Desired: 3}))
		}
	})
	f("a change that was not seen as it was made", func(p *play) {
		note(p, p.addChange(controllerChange{At: at(10), From: 3, To: 5, Missed: true}, ownDecision{At: at(10), Current: 3, Desired: 5, Decided: true}))
	}, "undecided: 3 to 5, weir 3, Missed")
	f("a change that was learnt of late", func(p *play) {
		changed(p, 10, 3, 5, 5)
		note(p, p.addChange(controllerChange{At: at(60), From: 5, To: 7}, ownDecision{At: at(92), Current: 5, Desired: 7, Decided: true}))
	}, "agreed: 3 to 5, weir 5", "undecided: 5 to 7, weir 5, Missed")
	f("a gap", func(p *play) {
		saw(p, 0, 3, 5)
		changed(p, 10, 3, 4, 5)
		note(p, p.addGap(at(900)))
		saw(p, 600, 4, 2)
		saw(p, 631, 4, 2)
	}, "undecided: 3 to 4, weir 3, Missed", "undecided: 4 to 4, weir 2, WarmingUp")

	p := &comparer{maxSkew: 30 * time.Second}
	for s := 0; s < 60; s += 15 {
		p.addDecision(ownDecision{At: at(s), Current: 3, Desired: 3, Decided: true})
	}
	if got := p.takeHolds(); got != 4 {
		t.Errorf("got %d rounds in which nobody did anything, want 4", got)
	}
	for s := range 100 {
		p.addChange(controllerChange{At: at(60 + s), From: 3, To: 4}, ownDecision{At: at(60 + s), Current: 3, Desired: 4, Decided: true})
	}
	if got := len(p.comparisons); got != keepComparisons {
		t.Errorf("%d comparisons are kept, want %d", got, keepComparisons)
	}
}

func TestDifferenceNamesWhatEachSaw(t *testing.T) {
	j := &comparer{maxSkew: 30 * time.Second}
	j.addChange(controllerChange{At: at(0), From: 3, To: 5, Targets: "cpu: 80%/50%"}, ownDecision{At: at(0), Current: 3, Desired: 4, Decided: true, Targets: "cpu: 60%/50%", Summary: "cpu asks for 4"})
	got := j.addDecision(ownDecision{At: at(31), Current: 5, Desired: 5, Decided: true})
	if len(got) != 1 || got[0].Explanation != "the controller saw cpu: 80%/50%, weir cpu: 60%/50%; weir: cpu asks for 4" {
		t.Errorf("got %v", got)
	}
}
