package payload_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// labels returns the labels in raw as "name=value;...".
func labels(raw string) (string, bool) {
	var sb strings.Builder
	ok := payload.EachLabel([]byte(raw), func(name []byte, value string) {
		fmt.Fprintf(&sb, "%s=%s;", name, value)
	})
	return sb.String(), ok
}

func TestEachLabel(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		if got, ok := labels(raw); !ok || got != want {
			t.Errorf("%s: got %q (%v), want %q", raw, got, ok, want)
		}
	}
	f(``, "")
	f(` `, "")
	f(`{} `, "")
	f(`{a="b"}`, "a=b;")
	f(`{a="b",c="d",}`, "a=b;c=d;")
	f(` { a = "b" , c="d" }  `, "a=b;c=d;")
	f(`{a="}",b="{,="}`, "a=};b={,=;")
	f(`{a="\\\"\n\x"}`, "a=\\\"\n\\x;")
	f(`{"a name",b="c"}`, "b=c;")
	f(`{"a.b"="c"}`, "a.b=c;")
	f(`{a="é"}`, "a=é;")
}

func TestEachLabelRefuses(t *testing.T) {
	for _, raw := range []string{`{`, `{a}`, `{a=}`, `{a=b}`, `{a="b"`, `{a="b" c="d"}`, `{,}`, `{1="b"}`, `{a="b"}x`, `x`, `{a="\`, `{"a`} {
		if got, ok := labels(raw); ok {
			t.Errorf("%s: got %q, want a refusal", raw, got)
		}
	}
}
