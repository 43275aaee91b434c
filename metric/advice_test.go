package metric

import (
	"strings"
	"testing"
	"time"
)

// What stays until somebody does something needs to say what; a sentence of
// advice ends like one.
func TestAdvice(t *testing.T) {
	for r := range Reason(NumReasons) {
		a := r.Advice()
		if a == "" && r.Severity() == Broken {
			t.Errorf("%v is broken and has no advice", r)
		}
		if a != "" && (!strings.HasSuffix(a, ".") || strings.Count(a, "`")%2 != 0) {
			t.Errorf("%v: %q does not end like a sentence, or leaves a ` open", r, a)
		}
	}
	for _, r := range []Reason{Unjudged, Measured, PodFinished, FirstSample, TooYoung, WarmingUp, NodeNotScrapedYet, Reason(NumReasons)} {
		if a := r.Advice(); a != "" {
			t.Errorf("%v: got the advice %q, want none: there is nothing to be done", r, a)
		}
	}
}

func TestNext(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		reason Reason
		in     time.Duration // until it is due; 0 if nobody knows when
		want   string
	}{
		{FirstSample, 9 * time.Second, "a second reading is due in 9 s"},
		{FirstSample, -time.Second, "a second reading is under way"},
		{FirstSample, 0, ""},
		{NodeTimeout, 90 * time.Second, "the next attempt is due in 90 s"},
		{PodPending, 9 * time.Second, "it is measured once it runs"},
		{Ambiguous, 0, "the choice is kept for as long as both are reported"},
		{NodeExcluded, 9 * time.Second, ""},
		{Measured, 9 * time.Second, ""},
		{Reason(NumReasons), 9 * time.Second, ""},
	} {
		var ev Evidence
		if test.in != 0 {
			ev.Due = now.Add(test.in).UnixNano()
		}
		if got := test.reason.Next(ev, now); got != test.want {
			t.Errorf("%v, due in %v: got %q, want %q", test.reason, test.in, got, test.want)
		}
	}
}

// Only what identity turns away, and what nobody misses, is no trouble at all.
func TestGravity(t *testing.T) {
	for r := range Reason(NumReasons) {
		got := r.Severity()
		switch layer := r.Layer(); {
		case layer == LayerScrape && got != Broken,
			layer == LayerRate && got == None,
			layer == LayerLife && got == Broken,
			layer == LayerIdentity && r != Ambiguous && got != None:
			t.Errorf("%v of layer %d is %v", r, layer, got)
		}
	}
	for g, want := range map[Severity]string{None: "none", Temporary: "temporary", Broken: "broken"} {
		if got := g.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                      "0.0 s",
		400 * time.Millisecond:                 "0.4 s",
		-9 * time.Second:                       "9 s",
		12400 * time.Millisecond:               "12 s",
		119 * time.Second:                      "119 s",
		119*time.Second + 600*1e6:              "2 min",
		3*time.Minute + 5*time.Second:          "3 min 5 s",
		10 * time.Minute:                       "10 min",
		119 * time.Minute:                      "119 min",
		2*time.Hour + 10*time.Minute:           "2 h 10 min",
		48 * time.Hour:                         "2 days",
		5*24*time.Hour + 3*time.Hour:           "5 days",
		599*time.Second + 700*time.Millisecond: "10 min",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v): got %q, want %q", d, got, want)
		}
	}
}
