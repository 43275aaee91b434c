package exact

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weir-metrics/weir/test/simulator"
)

// page is where the table is.
const page = "../../docs/exactness.md"

// rows are the rows of the table, by cause and endpoint.
var rows struct {
	sync.Mutex
	of map[[2]string]string
}

func addRow(cause, endpoint, row string) {
	rows.Lock()
	defer rows.Unlock()
	if rows.of == nil {
		rows.of = map[[2]string]string{}
	}
	rows.of[[2]string{cause, endpoint}] = row
}

// endpointNames are the endpoints in the order of the table.
var endpointNames = []string{simulator.Resource.String(), simulator.Summary.String(), simulator.CAdvisor.String(), "mixed"}

func TestMain(m *testing.M) {
	code := m.Run()
	if *table {
		if err := os.WriteFile(page, []byte(text()), 0o644); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// text returns the page.
func text() string {
	var b strings.Builder
	b.WriteString(intro)
	line := func(cause string) {
		for _, e := range endpointNames {
			b.WriteString(rows.of[[2]string{cause, e}])
		}
	}
	line("any")
	for i := range causes {
		line(causes[i].name)
	}
	b.WriteString("\nThe causes:\n\n- any: several faults of all kinds, at random\n")
	for i := range causes {
		fmt.Fprintf(&b, "- %s: %s\n", causes[i].name, causes[i].text)
	}
	fmt.Fprintf(&b, "\nThis page is written by `go test ./test/exact -timeout 2h -args -table -seeds %d -each %d`,\nhere from seed %d on.\n", *seeds, *each, firstSeed())
	return b.String()
}

var intro = fmt.Sprintf(`# How exact the numbers are

A simulator that knows the truth plays random schedules of trouble, and the served numbers are read as metrics.k8s.io reads them. A number is right if
the CPU rate is what the counter of the running container did in its window, and the memory is what that container had. Every other number is wrong. It counts
under the first of these that is true:

- decidable: what the node and the API server had said showed the right number;
- ended: the API server has named another run since the last read of the node;
- doubtful: weir marked the number as Ambiguous, which metrics.k8s.io does not show;
- undecidable: nothing that was said could show that it is wrong.

A container is decidable if what was said is enough for a right number. The last two columns are metrics-server's rule (the last two points of each name),
in the same schedules, for /metrics/resource: the share of readings that it serves right, and the share that it serves wrong.

%s plays new seeds each time, which it logs. It fails if more schedules are bad than this bar allows (of 10,000): %v with a
wrong number that was decidable, %v with any wrong number, %v with a missing number that was decidable, %v with an explanation that is untrue. Schedules
are counted because the wrong numbers of one schedule have one cause. A run of n schedules may have as many as a Poisson variable with the bar's mean exceeds in
one case of 10,000.

| cause | endpoint | readings | right | wrong: decidable | ended | doubtful | undecidable | absent of decidable | metrics-server right | metrics-server wrong |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, "`go test ./test/exact`", bar.decidable, bar.wrong, bar.absent, bar.untrue)

// The page has a row for each cause and endpoint, and the text of the causes.
func TestPage(t *testing.T) {
	if *table {
		t.Skip("-table writes the page")
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(data)
	if !strings.HasPrefix(got, intro) {
		t.Error("the introduction is not that of page_test.go: write the page again, by the command at its end")
	}
	for i := range causes {
		if c := &causes[i]; !strings.Contains(got, fmt.Sprintf("- %s: %s\n", c.name, c.text)) {
			t.Errorf("the cause %s is not listed: write the page again", c.name)
		}
		for _, e := range endpointNames[:3] {
			if !strings.Contains(got, fmt.Sprintf("\n| %s | %s | ", causes[i].name, e)) {
				t.Errorf("there is no row of %s by %s: write the page again", causes[i].name, e)
			}
		}
	}
}
