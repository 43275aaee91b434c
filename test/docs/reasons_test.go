package docs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/docs"
)

const reasonsPage = "../../docs/reasons.md"

func TestReasonsPageIsUpToDate(t *testing.T) {
	page := read(t, reasonsPage)
	want, err := docs.Reasons(page)
	if err != nil {
		t.Fatalf("docs/reasons.md: %v", err)
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("docs/reasons.md lags behind package metric; run make generate (-want +got):\n%s", diff)
	}
}

// TestReasonsTableIsWhole checks that the table at the top has every reason
// with a link to its section.
func TestReasonsTableIsWhole(t *testing.T) {
	table, _, _ := strings.Cut(read(t, reasonsPage), "\n## ")
	for r := range metric.Reason(metric.NumReasons) {
		if link := "[" + r.String() + "](#" + strings.ToLower(r.String()) + ")"; r.Layer() != metric.LayerNone && !strings.Contains(table, link) {
			t.Errorf("the table lacks %s", link)
		}
	}
}

// TestReasonsPageIsWhole checks that a missing or additional reason is an error
// that names it.
func TestReasonsPageIsWhole(t *testing.T) {
	page := read(t, reasonsPage)
	for _, test := range []struct{ from, to, want string }{
		{"### FirstSample\n", "", `found the section "TooYoung" under "Rate", want that on FirstSample under "Rate"`},
		{"### Incomplete\n", "", "there is no section on Incomplete"},
		{"### TooYoung\n", "### TooOld\n", `found the section "TooOld" under "Rate", want that on TooYoung under "Rate"`},
		{"## Rate\n", "## Rates\n", `found the section "FirstSample" under "Rates", want that on FirstSample under "Rate"`},
		{"### Incomplete\n", "### Incomplete\n\n**x**\n\n*What to do:* y\n\n### Overmuch\n", `the section "### Overmuch" is of no reason`},
		{"### Stale\n", "### Stale\n\n### Impossible\n", `the section on Stale needs a line that begins with "**" and one that begins with "*What to do:* "`},
	} {
		if !strings.Contains(page, test.from) {
			t.Fatalf("the page has no %q", test.from)
		}
		_, err := docs.Reasons(strings.Replace(page, test.from, test.to, 1))
		if got := errorText(err); got != test.want {
			t.Errorf("%q made %q:\n got: %s\nwant: %s", test.from, test.to, got, test.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}
