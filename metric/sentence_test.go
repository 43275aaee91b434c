package metric

import (
	"errors"
	"testing"
)

func TestEveryReasonHasASentence(t *testing.T) {
	seen := map[string]Reason{}
	for r := range Reason(NumReasons) {
		s := r.Sentence(CPU, Evidence{})
		if s == "" {
			t.Errorf("%v has no sentence", r)
		}
		if other, twice := seen[s]; twice {
			t.Errorf("%v and %v have one sentence: %q", r, other, s)
		}
		seen[s] = r
	}
}

func TestSentenceTellsTheEvidence(t *testing.T) {
	for _, test := range []struct {
		reason Reason
		ev     Evidence
		want   string
	}{
		{Incomplete, Evidence{Name: "app", Cause: FirstSample},
			"container app has no number: it was seen once, and a rate needs two readings"},
		{OtherNode, Evidence{Name: "n2"}, "the API server binds the pod to n2"},
		{CounterReset, Evidence{Other: CounterReading{Value: 100e9}, Got: CounterReading{Value: 10e9}},
			"the counter fell from 100s to 10s although nothing restarted"},
		{OverLimit, Evidence{Limit: 5000}, "it was dropped at the configured limit of 5000"},
		{NodeUnreachable, Evidence{Err: errors.New("connection refused")},
			"the node cannot be reached: connection refused"},
	} {
		if got := test.reason.Sentence(CPU, test.ev); got != test.want {
			t.Errorf("%v\n got: %s\nwant: %s", test.reason, got, test.want)
		}
	}
}
