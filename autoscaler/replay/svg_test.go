package replay

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/test/cmptest"
)

var evening = time.Date(2026, 1, 5, 22, 0, 0, 0, time.UTC)

// smallComparison returns a comparison of two runs of three hours.
func smallComparison() *Comparison {
	points := func(counts ...int32) (list []SyncPoint) {
		for i, n := range counts {
			list = append(list, SyncPoint{
				At: evening.Add(time.Duration(i) * 30 * time.Minute), Desired: n,
				Demand: []float64{2, 4.5, 7, -1, 3, 3}[i], Recorded: []int32{2, 2, 8, -1, 5, 5}[i],
			})
		}
		return list
	}
	return &Comparison{
		Namespace: "shop", Target: "Deployment/<web> & co", From: evening, To: evening.Add(3 * time.Hour),
		Runs: []NamedRun{
			{"old.yaml", &RunResult{Min: 2, Max: 10, Points: points(2, 2, 6, 6, 4, 4), Totals: Totals{PodHours: 12, Above: 90}}},
			{"new.yaml", &RunResult{Min: 1, Max: 1000, Points: points(2, 3, 4, 4, 4, 4), Totals: Totals{PodHours: 10.5}, Recorded: &Totals{}}},
		},
	}
}

func drawSVG(t *testing.T, r *Comparison) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return out.Bytes()
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

// TestSVG compares the picture with a file. WEIR_REWRITE=1 rewrites the file; look at it in a
// browser.
func TestSVG(t *testing.T) {
	got := drawSVG(t, smallComparison())
	const path = "testdata/small.svg"
	if os.Getenv("WEIR_REWRITE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cmptest.Equal(t, "the picture has changed; WEIR_REWRITE=1 rewrites it", string(want), string(got))
}

func TestHostileNamesInSVG(t *testing.T) {
	r := smallComparison()
	r.Target, r.Runs[0].Name = "</title><script>alert(1)</script>\x00\xff", `"&'<>`
	if bytes.Contains(drawSVG(t, r), []byte("<script")) {
		t.Error("text became an element")
	}
}

func TestValueTicks(t *testing.T) {
	for most, want := range map[float64][]float64{
		0: {0, 1}, 0.3: {0, 1}, 5: {0, 1, 2, 3, 4, 5}, 7: {0, 2, 4, 6, 8}, 30: {0, 5, 10, 15, 20, 25, 30}, 31: {0, 10, 20, 30, 40}, 480: {0, 100, 200, 300, 400, 500},
	} {
		if got := valueTicks(most); !cmp.Equal(got, want) {
			t.Errorf("up to %v: got %v, want %v", most, got, want)
		}
	}
}

func TestTimeStep(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		2 * time.Minute: time.Minute, time.Hour: 15 * time.Minute, 3 * time.Hour: 30 * time.Minute,
		24 * time.Hour: 3 * time.Hour, 7 * 24 * time.Hour: 24 * time.Hour, 400 * 24 * time.Hour: 41 * 24 * time.Hour,
	} {
		if got := timeStep(span); got != want {
			t.Errorf("over %v: got a mark every %v, want %v", span, got, want)
		}
	}
}
