package resource_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/test/payloadtest"
)

// FuzzSpelling checks that both ways to read labels give the same result. No kubelet writes a blank
// before the labels, so that form is read label by label.
func FuzzSpelling(f *testing.F) {
	payloadtest.Seeds(f, "resource.prom")
	node := payloadtest.Capture(f, "01-steady/00/resource.prom")
	f.Add(slices.Concat(node[:900], []byte("\n"), node[3000:3900]))
	for _, second := range []string{memoryLine, startLine, "container_memory_working_set_bytes{namespace=\"n\",container=\"c\",pod=\"p\"}"} {
		f.Add([]byte(cpuLine + " 1\n" + cpuLine + " 2 1795234949671\n" + second + " 3\n" + second + " 4\n"))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req := payloadtest.Request()
		req.MaxSamples = 50
		var other []byte
		for line := range bytes.Lines(body) {
			if i := bytes.IndexAny(line, "{ \t#"); i >= 0 && line[i] == '{' {
				line = slices.Concat(line[:i], []byte(" "), line[i:])
			}
			other = append(other, line...)
		}
		var got, want metric.Batch
		err, wantErr := resource.New().Parse(body, req, &got), resource.New().Parse(other, req, &want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v; with blanks: %v", err, wantErr)
		}
		if diff := cmp.Diff(payloadtest.Lines(&want), payloadtest.Lines(&got)); diff != "" {
			t.Fatalf("(-with blanks +as it is):\n%s", diff)
		}
	})
}
