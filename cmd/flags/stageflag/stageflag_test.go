package stageflag

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/test/cmptest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Stage{
		"host":                      {"host", "", url.Values{}},
		"kubelet:":                  {"kubelet", "", url.Values{}},
		"kubelet:?endpoint=a&b=c":   {"kubelet", "", url.Values{"endpoint": {"a"}, "b": {"c"}}},
		"kubelet?endpoint=a":        {"kubelet", "", url.Values{"endpoint": {"a"}}},
		"x:https://h:1/p?q=http%3A": {"x", "https://h:1/p", url.Values{"q": {"http:"}}},
		"x:?a=1&a=2":                {"x", "", url.Values{"a": {"1", "2"}}},
		"x:?a":                      {"x", "", url.Values{"a": {""}}},
	} {
		got, err := Parse(text)
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		cmptest.Equal(t, fmt.Sprintf("Parse(%q)", text), want, got)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":            `"" has no name: write NAME[:CONFIG][?OPTIONS]`,
		":a?b=c":      `":a?xxxxx" has no name: write NAME[:CONFIG][?OPTIONS]`,
		"Kube let:x":  `"Kube let" is not a name: write NAME[:CONFIG][?OPTIONS], as in kubelet:?endpoint=summary`,
		"endpoint=a":  `"endpoint=a" is not a name: write NAME[:CONFIG][?OPTIONS], as in kubelet:?endpoint=summary`,
		"x?a=%zz":     `read options of x: invalid URL escape "%zz"`,
		"x?=1":        `options of x have a value without a name`,
		"kubelet:?;a": `read options of kubelet: invalid semicolon separator in query`,
	} {
		_, err := Parse(text)
		if err == nil || err.Error() != want {
			t.Errorf("Parse(%q)\n got: %v\nwant: %s", text, err, want)
		}
	}
}

func TestSetKnowsTheNames(t *testing.T) {
	l := StageList{What: "source", Known: []string{"kubelet", "host"}}
	for text, want := range map[string]string{
		"kublet:?a=b": `no source is called "kublet": did you mean "kubelet"?`,
		"influxdb":    `no source is called "influxdb": there are kubelet, host`,
	} {
		if err := l.Set(text); err == nil || err.Error() != want {
			t.Errorf("Set(%q)\n got: %v\nwant: %s", text, err, want)
		}
	}
	for _, text := range []string{"host", "kubelet:?b=2&a=1"} {
		if err := l.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := l.String(), "host kubelet:?a=1&b=2"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("kubelet:https://h:1?a=b&c")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil {
			t.Fatalf("%q was written as %q, which does not parse: %v", text, s, err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Errorf("%q does not survive a round (-once +twice):\n%s", text, diff)
		}
	})
}
