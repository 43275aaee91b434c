package history

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// prometheus is a server that answers query_range with two series: one that has the times as
// values, and one that ended at a time. Like a real server it refuses more than 11,000 points.
func prometheus(t *testing.T, ended time.Time) (*Client, *int) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(r.FormValue(name), 64)
			if err != nil {
				t.Errorf("%s=%q", name, r.FormValue(name))
			}
			return v
		}
		start, end, step := number("start"), number("end"), number("step")
		if (end-start)/step > 11_000 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries"}`)
			return
		}
		var all, some []string
		for at := start; at <= end; at += step {
			point := fmt.Sprintf(`[%.3f,"%.0f"]`, at, at)
			all = append(all, point)
			if at < float64(ended.Unix()) {
				some = append(some, point)
			}
		}
		result := fmt.Sprintf(`{"metric":{"s":"all"},"values":[%s]}`, strings.Join(all, ","))
		if len(some) > 0 {
			result = fmt.Sprintf(`{"metric":{"s":"some"},"values":[%s]},%s`, strings.Join(some, ","), result)
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`, result)
	}))
	t.Cleanup(s.Close)
	c, err := New(Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, &asked
}

// TestRangeOfManyPieces reads a week in several requests. Each point occurs once, in order.
func TestRangeOfManyPieces(t *testing.T) {
	from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	to := from.Add(7 * 24 * time.Hour)
	client, asked := prometheus(t, from.Add(time.Hour))
	var progress []string
	client.options.Progress = func(query string, piece, of int) {
		progress = append(progress, fmt.Sprintf("%s %d/%d", query, piece, of))
	}
	lines, err := client.Range(t.Context(), "time()", from, to, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if *asked != 2 || strings.Join(progress, ", ") != "time() 1/2, time() 2/2" {
		t.Errorf("asked %d times, told %v, want 2 pieces", *asked, progress)
	}
	if len(lines) != 2 || lines[0].Labels["s"] != "all" || lines[1].Labels["s"] != "some" {
		t.Fatalf("got %d lines, want all and some", len(lines))
	}
	if n := len(lines[1].Points); n != 60 {
		t.Errorf("the series that ended has %d points, want 60", n)
	}
	if n, want := len(lines[0].Points), 7*24*60+1; n != want {
		t.Fatalf("got %d points, want %d", n, want)
	}
	for i, p := range lines[0].Points {
		if want := from.Add(time.Duration(i) * time.Minute); !p.At.Equal(want) || p.Value != float64(want.Unix()) {
			t.Fatalf("point %d is %v at %s, want %d at %s", i, p.Value, p.At, want.Unix(), want)
		}
	}
}

func TestRangeEnds(t *testing.T) {
	from := time.Unix(1_700_000_000, 0)
	client, asked := prometheus(t, from)
	for points, pieces := range map[int]int{1: 1, pointsPerRequest: 1, pointsPerRequest + 1: 2, 2 * pointsPerRequest: 2, 2*pointsPerRequest + 1: 3} {
		*asked = 0
		lines, err := client.Range(t.Context(), "x", from, from.Add(time.Duration(points-1)*15*time.Second), 15*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(lines[0].Points); got != points || *asked != pieces {
			t.Errorf("%d points: got %d in %d pieces, want %d pieces", points, got, *asked, pieces)
		}
	}
	if _, err := client.Range(t.Context(), "x", from, from.Add(-time.Second), time.Second); err == nil {
		t.Error("a range that ends before it begins gave no error")
	}
}

func TestRangeSaysWhichPieceFailed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": "timeout", "error": "query timed out"})
	}))
	defer s.Close()
	client, err := New(Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	from := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	_, err = client.Range(t.Context(), "up", from, from.Add(time.Hour), time.Minute)
	if want := "query up from 2026-01-05T00:00:00Z to 2026-01-05T01:00:00Z: Prometheus answered 503: timeout: query timed out"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStep(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{time.Hour: 15 * time.Second, 24 * time.Hour: 15 * time.Second, 48 * time.Hour: 30 * time.Second, 7 * 24 * time.Hour: time.Minute} {
		if got := Step(span); got != want {
			t.Errorf("Step(%s) = %s, want %s", span, got, want)
		}
	}
}
