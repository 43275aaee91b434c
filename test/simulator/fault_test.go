package simulator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	f := func(text string, want Fault, printed string) {
		t.Helper()
		got, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", text, d)
		}
		if got.String() != printed {
			t.Errorf("Parse(%q).String() = %q, want %q", text, got.String(), printed)
		}
	}
	f("restart pod=shop/web-* container=app at=30s", Fault{Kind: Restart, Pod: "shop/web-*", Container: "app", At: 30 * time.Second},
		"restart pod=shop/web-* container=app at=30s")
	f("  restart  at=0s\tpod=web", Fault{Kind: Restart, Pod: "web"}, "restart pod=web at=0s")
	f("replace pod=db-0 at=1m for=5s", Fault{Kind: Replace, Pod: "db-0", At: time.Minute, For: 5 * time.Second}, "replace pod=db-0 at=1m0s for=5s")
	f("duplicate pod=web at=1m for=90s", Fault{Kind: Duplicate, Pod: "web", At: time.Minute, For: 90 * time.Second, Style: OldInstance},
		"duplicate pod=web at=1m0s for=1m30s style=old-instance")
	f("duplicate pod=web at=1s style=two-lines container=a?p", Fault{Kind: Duplicate, Pod: "web", Container: "a?p", At: time.Second, Style: TwoLines},
		"duplicate pod=web container=a?p at=1s style=two-lines")
	f("twonodes pod=web node=node-0002", Fault{Kind: TwoNodes, Pod: "web", Node: "node-0002"}, "twonodes node=node-0002 pod=web")
	f("jitter pod=* start=±2s", Fault{Kind: Jitter, Pod: "*", Spread: 2 * time.Second}, "jitter pod=* start=±2s")
	f("clockstep node=n by=-40s at=1m", Fault{Kind: ClockStep, Node: "n", By: -40 * time.Second, At: time.Minute}, "clockstep node=n at=1m0s by=-40s")
	f("slow node=n delay=5s", Fault{Kind: Slow, Node: "n", Delay: 5 * time.Second}, "slow node=n delay=5s")
	f("slow node=n 5s at=2s", Fault{Kind: Slow, Node: "n", Delay: 5 * time.Second, At: 2 * time.Second}, "slow node=n at=2s delay=5s")
	f("garbage node=n", Fault{Kind: Garbage, Node: "n", Style: Binary}, "garbage node=n style=binary")
	f("bulk node=n for=1m", Fault{Kind: Bulk, Node: "n", For: time.Minute}, "bulk node=n for=1m0s")
	f("missing container=proxy", Fault{Kind: Missing, Container: "proxy"}, "missing container=proxy")
	f("pending pod=web at=1m", Fault{Kind: Pending, Pod: "web", At: time.Minute}, "pending pod=web at=1m0s")
	f("finish pod=web at=1s", Fault{Kind: Finish, Pod: "web", At: time.Second, Style: WasSuccessful}, "finish pod=web at=1s style=succeeded")
	f("finish pod=web container=app at=1s style=failed", Fault{Kind: Finish, Pod: "web", Container: "app", At: time.Second, Style: HasFailed}, "finish pod=web container=app at=1s style=failed")
	f("terminate pod=web at=1s for=30s", Fault{Kind: Terminate, Pod: "web", At: time.Second, For: 30 * time.Second}, "terminate pod=web at=1s for=30s")
	f("leap pod=web by=10m at=1s", Fault{Kind: Leap, Pod: "web", By: 10 * time.Minute, At: time.Second}, "leap pod=web at=1s by=10m0s")
	f("duplicate pod=web at=1s style=two-qos", Fault{Kind: Duplicate, Pod: "web", At: time.Second, Style: TwoQoS}, "duplicate pod=web at=1s style=two-qos")
	f("refuse node=n", Fault{Kind: Refuse, Node: "n", Style: Unauthorized}, "refuse node=n style=unauthorized")
	f("certificate node=n style=wrong-name", Fault{Kind: Certificate, Node: "n", Style: WrongName}, "certificate node=n style=wrong-name")
	f("impostor as=m node=n at=1s", Fault{Kind: Impostor, Node: "n", As: "m", At: time.Second}, "impostor node=n at=1s as=m")
	f("scrapeerror node=n", Fault{Kind: ScrapeError, Node: "n"}, "scrapeerror node=n")
	f("notready node=n", Fault{Kind: NotReady, Node: "n"}, "notready node=n")
	f("noaddress node=n", Fault{Kind: NoAddress, Node: "n"}, "noaddress node=n")
	f("unlisted node=n for=5s", Fault{Kind: Unlisted, Node: "n", For: 5 * time.Second}, "unlisted node=n for=5s")
}

func TestParseErrorsNameThePlace(t *testing.T) {
	f := func(text string, column int, want string) {
		t.Helper()
		_, err := Parse(text)
		var p *ParseError
		if !errors.As(err, &p) {
			t.Errorf("Parse(%q): got error %v, want a *ParseError", text, err)
			return
		}
		if p.Column != column || !strings.Contains(p.Msg, want) {
			t.Errorf("Parse(%q): got %q, want column %d and %q", text, p, column, want)
		}
	}
	f("", 1, "empty: want one of restart, replace")
	f("restrat pod=web at=1s", 1, `unknown fault "restrat"`)
	f("restart pod=web", 16, "restart needs at")
	f("restart pod=web at=soon", 20, `"soon" is not a duration`)
	f("restart pod=web at=-1s", 20, `"-1s" is negative`)
	f("restart pod=web at=1s for=0s", 27, `"0s" is nothing`)
	f("restart pod=web at=1s at=2s", 23, "at is given twice")
	f("restart pod=web at=1s delay=2s", 23, `restart has no "delay": it takes pod, container, at, for`)
	f("restart pod= at=1s", 13, "empty pattern")
	f("restart pod=shop/web/x at=1s", 21, `'/' cannot be part of a name`)
	f("restart pod=w{b at=1s", 14, `'{' cannot be part of a name`)
	f("restart pod=web at=1s now", 23, `"now" is not NAME=VALUE`)
	f("jitter pod=web start=2s", 22, "want ± and a duration")
	f("jitter pod=web start=±x", 24, `"x" is not a duration`)
	f("duplicate pod=web at=1s style=html", 31, `duplicate has no style "html": want one of old-instance two-lines two-paths`)
	f("clockstep node=n by=0s at=1s", 21, "a step of 0 is none")
	f("clockstep node=n by=999999h at=1s", 21, "too long")
	f("missing at=1s", 14, "missing needs one of pod, container")
	f("reset at=1s node=n pod=p", 1, "not both")
	f("slow node=n 5s delay=6s", 16, "delay is given twice")
	f("leap pod=web by=-1s at=1s", 1, "a leap goes up")
	f("duplicate pod=web container=app at=1s style=two-qos", 1, "takes no container")
	f("impostor node=n", 16, "impostor needs as")
	f("finish pod=web at=1s for=1s", 22, `finish has no "for": it takes pod, container, at, style`)
	f("refuse node=n style=expired", 21, `refuse has no style "expired": want one of unauthorized forbidden`)
}

func TestReadFaults(t *testing.T) {
	got, err := ReadFaults(strings.NewReader("# a comment\n\nhang node=node-0001 # and another\r\ndown node=node-0002 at=5s\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Fault{{Kind: Hang, Node: "node-0001"}, {Kind: Down, Node: "node-0002", At: 5 * time.Second}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ReadFaults (-want +got):\n%s", d)
	}
	_, err = ReadFaults(strings.NewReader("hang node=a\n\n  hang node=a b\n"))
	if want := `line 3, column 15: "b" is not NAME=VALUE: hang takes node, at, for`; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

func TestMatch(t *testing.T) {
	f := func(pattern, name string, want bool) {
		t.Helper()
		if got := match(pattern, name); got != want {
			t.Errorf("match(%q, %q) = %v, want %v", pattern, name, got, want)
		}
	}
	f("", "web", true)
	f("web", "web", true)
	f("web", "web-1", false)
	f("web-*", "web-7d9f-x2", true)
	f("*-x2", "web-7d9f-x2", true)
	f("*a*b*", "xxaxxbxx", true)
	f("*a*b*", "xxbxxaxx", false)
	f("w?b", "web", true)
	f("w?b", "wb", false)
	f("**", "", true)
}

// FuzzParse checks that the text of every accepted fault parses to the same
// fault and prints the same again, and that every error gives a position within
// the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"restart pod=shop/web-* container=app at=30s", "duplicate pod=a at=1s for=2s style=two-paths", "jitter pod=* start=±2s",
		"slow node=n 5s", "clockstep node=n by=-40s at=1m", "reset at=1s node=n", "zero container=*", "garbage node=n style=html", "impostor node=n as=m", "leap pod=a by=10m at=1s",
		"finish pod=a at=1s style=failed", "certificate node=n", "x", "restart pod=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		if err != nil {
			var p *ParseError
			if !errors.As(err, &p) {
				t.Fatalf("Parse(%q): error %v is no *ParseError", text, err)
			}
			if p.Column < 1 || p.Column > len(text)+1 {
				t.Fatalf("Parse(%q): column %d is outside the text", text, p.Column)
			}
			return
		}
		printed := a.String()
		b, err := Parse(printed)
		if err != nil {
			t.Fatalf("Parse(%q) prints %q, which is refused: %v", text, printed, err)
		}
		if a != b {
			t.Fatalf("Parse(%q) = %+v, but printed and read again it is %+v", text, a, b)
		}
		if b.String() != printed {
			t.Fatalf("%q prints as %q", printed, b.String())
		}
	})
}
