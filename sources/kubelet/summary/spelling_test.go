package summary_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/payloadtest"
)

// wantSpelling checks that the fast paths for a kubelet's own spelling give the same result as the
// general parser.
func wantSpelling(t *testing.T, body []byte) {
	t.Helper()
	req := payloadtest.Request()
	req.MaxSamples = 400
	parse := func(body []byte) ([]string, error) {
		var b metric.Batch
		err := summary.New().Parse(body, req, &b)
		return payloadtest.Lines(&b), err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		t.Fatal(err)
	}
	want, wantErr := parse(compact.Bytes())
	check := func(spelling string, body []byte) {
		t.Helper()
		got, err := parse(body)
		if !sameReason(err, wantErr) {
			t.Fatalf("%s: error %v; on one line: %v", spelling, err, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-on one line +so):\n%s", spelling, diff)
		}
	}
	check("as it is", body)
	for _, indent := range []string{" ", "  ", "\t"} {
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", indent); err != nil {
			t.Fatal(err)
		}
		check("indented", b.Bytes())
	}
}

func sameReason(a, b error) bool {
	var one, two *metric.ReadError
	if !errors.As(a, &one) || !errors.As(b, &two) {
		return a == nil && b == nil
	}
	return one.Reason == two.Reason
}

func TestSpellingOfCaptures(t *testing.T) {
	for _, path := range []string{"01-steady/00/summary.json", "08-kubelet-restart/00/summary.json"} {
		body := payloadtest.Capture(t, path)
		wantSpelling(t, body)
		// These payloads have pressure in other places, and fewer of the other numbers.
		wantSpelling(t, bytes.ReplaceAll(body, []byte(`"total": 0,`), []byte(`"total": 1234567,`)))
		wantSpelling(t, bytes.Replace(body, []byte(`"total": 0,`), []byte(`"total": 1234567,`), 3))
		wantSpelling(t, bytes.ReplaceAll(body, []byte(`"full": {`), []byte(`"less": {`)))
		wantSpelling(t, bytes.ReplaceAll(body, []byte(`"time"`), []byte(`"then"`)))
		wantSpelling(t, bytes.ReplaceAll(body, []byte(`"usageBytes"`), []byte(`"rssBytes"`)))
		wantSpelling(t, bytes.ReplaceAll(body, []byte(`"psi"`), []byte(`"usageNanoCores"`)))
	}
}

func FuzzSpelling(f *testing.F) {
	var whole struct {
		Node json.RawMessage   `json:"node"`
		Pods []json.RawMessage `json:"pods"`
	}
	if err := json.Unmarshal(payloadtest.Capture(f, "01-steady/00/summary.json"), &whole); err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		few := whole
		few.Pods = whole.Pods[i : i+1]
		if i > 0 {
			few.Node = json.RawMessage("{}")
		}
		body, err := json.MarshalIndent(few, "", " ")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
		f.Add(bytes.ReplaceAll(body, []byte(`"total": 0,`), []byte(`"total": 98765,`)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if json.Valid(body) {
			wantSpelling(t, body)
		}
	})
}
