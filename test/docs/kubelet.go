package docs

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/api/kubeletapi"
)

const (
	generatedBegins = "<!-- written by make generate -->\n"
	generatedEnds   = "<!-- end -->\n"
)

// KubeletDifferences returns docs/agent.md with its table of the differences
// between an agent and a kubelet up to date. page is the present text; its
// other lines are not changed.
func KubeletDifferences(page string) (string, error) {
	before, rest, ok := strings.Cut(page, generatedBegins)
	_, after, ends := strings.Cut(rest, generatedEnds)
	if !ok || !ends {
		return "", fmt.Errorf("the page has no lines %q and %q", generatedBegins, generatedEnds)
	}
	var b strings.Builder
	b.WriteString("| family | difference | why |\n| --- | --- | --- |\n")
	for _, d := range kubeletapi.CAdvisorDifferences {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, d.Kind, d.Why)
	}
	return before + generatedBegins + b.String() + generatedEnds + after, nil
}
