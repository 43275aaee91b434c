package checkcmd

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// took matches how long a query took.
var took = regexp.MustCompile(`\b\d+(ms|µs|s)\b`)

// TestCheck runs a transcript: the input and output that a user of weir check sees.
func TestCheck(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := `[]`
		switch r.FormValue("query") {
		case `sum by (pod) (rate(http_requests_total{namespace="default"}[2m]))`:
			result = `[{"metric":{"pod":"web-0"},"value":[1,"12.5"]},{"metric":{"pod":"web-1"},"value":[1,"3"]},{"metric":{},"value":[1,"1"]}]`
		case `sum by (queue) (queue_depth{namespace="default"})`:
			result = `[{"metric":{"queue":"mail"},"value":[1,"12.5"]},{"metric":{"queue":"bulk"},"value":[1,"3"]}]`
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":%s}}`, result)
	}))
	defer prometheus.Close()
	defer http.DefaultClient.CloseIdleConnections()
	datadriven.RunTest(t, "testdata/transcript.txt", func(t *testing.T, d *datadriven.TestData) string {
		var out bytes.Buffer
		for line := range strings.Lines(d.Input) {
			root := &cobra.Command{Use: "weir"}
			root.AddCommand(NewCommand())
			words := strings.Fields(strings.ReplaceAll(line, "$PROMETHEUS", prometheus.URL))
			if status := cli.Main(t.Context(), root, words[1:], &out, &out); status != 0 {
				fmt.Fprintf(&out, "exit status %d\n", status)
			}
		}
		return took.ReplaceAllString(out.String(), "1ms")
	})
}
