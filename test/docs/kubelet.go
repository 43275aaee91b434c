package docs

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/test/differences"
)

const (
	generatedBegins = "<!-- written by make generate -->\n"
	generatedEnds   = "<!-- end -->\n"
)

// KubeletDifferences returns docs/agent-as-kubelet.md with its tables of the differences
// between an agent and a kubelet up to date. page is the present text; its
// other lines are not changed.
func KubeletDifferences(page string) (string, error) {
	var b strings.Builder
	for _, table := range []struct {
		of  string
		all []differences.Difference
	}{{"family", differences.CAdvisor}, {"field", differences.Summary}} {
		before, rest, ok := strings.Cut(page, generatedBegins)
		_, after, ends := strings.Cut(rest, generatedEnds)
		if !ok || !ends {
			return "", fmt.Errorf("the page has no lines %q and %q for each %s", generatedBegins, generatedEnds, table.of)
		}
		fmt.Fprintf(&b, "%s%s| %s | difference | why |\n| --- | --- | --- |\n", before, generatedBegins, table.of)
		for _, d := range table.all {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, d.Kind, d.Why)
		}
		b.WriteString(generatedEnds)
		page = after
	}
	return b.String() + page, nil
}
