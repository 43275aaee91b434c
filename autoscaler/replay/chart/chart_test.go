package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var began = time.Date(2026, 1, 5, 22, 0, 0, 0, time.UTC)

func at(minutes int, value float64) Point {
	return Point{began.Add(time.Duration(minutes) * time.Minute), value}
}

// small is a chart of every style.
func small() *Chart {
	return &Chart{
		Title: "Replicas of <web> & co", Subtitle: "three hours", Unit: "pods", From: began, To: began.Add(3 * time.Hour),
		Series: []Series{
			{Name: "demand", Style: Area, Points: []Point{at(0, 2), at(60, 7), at(120, 3), at(180, 3)}},
			{Name: "recorded", Style: Recorded, Points: []Point{at(0, 2), at(60, 8), at(90, math.NaN()), at(120, 5)}},
			{Name: "old", Style: Step, Points: []Point{at(0, 2), at(30, 2), at(60, 6)}},
			{Name: "new", Style: Step, Points: []Point{at(0, 2), at(70, 4)}},
			{Name: "maxReplicas 10", Style: Bound, Points: []Point{at(0, 10)}},
			{Name: "far away", Style: Bound, Points: []Point{at(0, 1000)}},
		},
	}
}

func draw(t *testing.T, c *Chart) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := c.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The picture is held to a file; WEIR_REWRITE=1 rewrites it, to be looked at in a
// browser.
func TestGolden(t *testing.T) {
	got := draw(t, small())
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
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the picture has changed; WEIR_REWRITE=1 rewrites it (-want +got)\n%s", diff)
	}
}

// paths returns the d of each path of a class.
func paths(t *testing.T, svg []byte, class string) (list []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("the SVG is no XML: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "path" {
			continue
		}
		attributes := map[string]string{}
		for _, a := range start.Attr {
			attributes[a.Name.Local] = a.Value
		}
		if attributes["class"] == class {
			list = append(list, attributes["d"])
		}
	}
}

// The plot is 880 pixels wide from 52 on, and 276 high up from 360, for 10 pods.
func TestLines(t *testing.T) {
	svg := draw(t, small())
	for class, want := range map[string][]string{
		"line step0": {"M52.0 304.8H345.3V194.4H932.0"},
		"line step1": {"M52.0 304.8H394.2V249.6H932.0"},
		"line past":  {"M52.0 304.8H345.3V139.2H492.0", "M638.7 222.0H932.0"},
		"line bound": {"M52.0 84.0H932.0"},
		"line area":  {"M52.0 304.8L345.3 166.8L638.7 277.2L932.0 277.2"},
	} {
		if got := paths(t, svg, class); !cmp.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", class, got, want)
		}
	}
}

// Of many points in a pixel's width, the lowest and the highest are kept.
func TestManyPoints(t *testing.T) {
	c := &Chart{Title: "many", From: began, To: began.Add(time.Hour), Series: []Series{{Style: Area}}}
	for i := range 360_000 {
		v := 1.0
		if i == 200_000 {
			v = 9
		}
		c.Series[0].Points = append(c.Series[0].Points, Point{began.Add(time.Duration(i) * 10 * time.Millisecond), v})
	}
	svg := draw(t, c)
	if len(svg) > 60_000 {
		t.Errorf("the picture has %d bytes", len(svg))
	}
	peak := fmt.Sprintf(" %.1f", (&plot{chart: c, ticks: valueTicks(9), top: 84}).y(9))
	if !strings.Contains(paths(t, svg, "line area")[0], peak) {
		t.Errorf("the one point of 9 (y=%s) is lost", peak)
	}
}

func TestHostileText(t *testing.T) {
	c := small()
	c.Title, c.Series[0].Name = "</title><script>alert(1)</script>\x00\xff", `"&'<>`
	svg := draw(t, c)
	paths(t, svg, "") // is it XML?
	if bytes.Contains(svg, []byte("<script")) {
		t.Error("text became an element")
	}
}

// What is too long for a line goes on below, and moves the plot down.
func TestLongNames(t *testing.T) {
	c := small()
	c.Subtitle = strings.Repeat("a", 60) + " · " + strings.Repeat("b", 60) + " · c · " + strings.Repeat("d", 200)
	if got, want := breakLines(c.Subtitle), []string{strings.Repeat("a", 60) + " · " + strings.Repeat("b", 60), "c", strings.Repeat("d", 200)}; !cmp.Equal(got, want) {
		t.Errorf("got lines %q, want %q", got, want)
	}
	c.Series[2].Name, c.Series[3].Name = strings.Repeat("o", 90), strings.Repeat("n", 90)
	names, rows := c.legend()
	var got []int
	for _, n := range names {
		got = append(got, n.row)
	}
	if want := []int{0, 0, 0, 1, 1, 2}; !cmp.Equal(got, want) || rows != 3 {
		t.Errorf("got rows %v of %d, want %v of 3", got, rows, want)
	}
	svg := draw(t, c)
	if want := `width="960" height="472"`; !bytes.Contains(svg, []byte(want)) {
		t.Errorf("the picture is not of %s", want)
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

func TestTimeTicks(t *testing.T) {
	for _, test := range []struct {
		span  time.Duration
		want  int
		first string
		last  string
	}{
		{2 * time.Minute, 9, "22:00:00", "22:02:00"},
		{time.Hour, 7, "22:00", "23:00"},
		{3 * time.Hour, 7, "22:00", "01:00"},
		{24 * time.Hour, 8, "Jan 6", "21:00"},
		{7 * 24 * time.Hour, 7, "Jan 6", "Jan 12"},
		{400 * 24 * time.Hour, 9, "Feb 16", "Jan 18"},
	} {
		got := timeTicks(began, began.Add(test.span))
		if len(got) != test.want || got[0].label != test.first || got[len(got)-1].label != test.last {
			t.Errorf("%s: got %v, want %d from %s to %s", test.span, got, test.want, test.first, test.last)
		}
	}
}

func TestNoTime(t *testing.T) {
	if err := (&Chart{From: began, To: began}).WriteSVG(io.Discard); err == nil {
		t.Error("a chart of no time gave no error")
	}
}
