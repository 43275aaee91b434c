package docs

import (
	"fmt"
	"strings"

	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// The prefixes of the lines in a reason's section that are generated from
// package metric.
const (
	headingOf = "### "
	summaryOf = "**"
	adviceOf  = "*What to do:* "
)

// layers are the headings of the layers in docs/reasons.md.
var layers = map[metric.Layer]string{
	metric.LayerLife:     "Life",
	metric.LayerNode:     "Node",
	metric.LayerScrape:   "Scrape",
	metric.LayerReport:   "Report",
	metric.LayerIdentity: "Identity",
	metric.LayerRate:     "Rate",
	metric.LayerPod:      "Pod",
	metric.LayerNone:     "No reason",
}

// Reasons returns docs/reasons.md with its generated lines up to date: each
// reason's sentence, severity and advice, from package metric. page is the
// present text; its other lines are not changed. Reasons returns an error
// unless the page has exactly one section for each reason, in the order of the
// reasons, with both generated lines.
func Reasons(page string) (string, error) {
	lines := strings.Split(page, "\n")
	layer, next := "", 0 // the heading above, and the reason of the next section
	var reason *metric.Reason
	var said, advised bool
	end := func() error {
		if reason != nil && (!said || !advised) {
			return fmt.Errorf("the section on %v needs a line that begins with %q and one that begins with %q", *reason, summaryOf, adviceOf)
		}
		return nil
	}
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "## "):
			layer = strings.TrimPrefix(line, "## ")
		case strings.HasPrefix(line, headingOf):
			if err := end(); err != nil {
				return "", err
			}
			if next == metric.NumReasons {
				return "", fmt.Errorf("the section %q is of no reason", line)
			}
			r := metric.Reason(next)
			if name := strings.TrimPrefix(line, headingOf); name != r.String() || layer != layers[r.Layer()] {
				return "", fmt.Errorf("found the section %q under %q, want that on %v under %q", name, layer, r, layers[r.Layer()])
			}
			reason, said, advised, next = &r, false, false, next+1
		case reason != nil && !said && strings.HasPrefix(line, summaryOf):
			lines[i], said = summary(*reason), true
		case reason != nil && strings.HasPrefix(line, adviceOf):
			lines[i], advised = adviceOf+advice(*reason), true
		}
	}
	if err := end(); err != nil {
		return "", err
	}
	if next < metric.NumReasons {
		return "", fmt.Errorf("there is no section on %v", metric.Reason(next))
	}
	return strings.Join(lines, "\n"), nil
}

func summary(r metric.Reason) string {
	s := explain.Message(r, metric.CPU, metric.Evidence{})
	line := fmt.Sprintf("**%s%s.**", strings.ToUpper(s[:1]), s[1:])
	switch r.Severity() {
	case metric.Temporary:
		line += " It passes."
	case metric.Broken:
		line += " It stays until somebody does something."
	}
	return line
}

func advice(r metric.Reason) string {
	if a := explain.Advice(r); a != "" {
		return a
	}
	return "nothing."
}
