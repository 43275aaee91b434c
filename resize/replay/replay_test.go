package replay_test

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/trace"
	"github.com/weir-metrics/weir/resize"
	"github.com/weir-metrics/weir/resize/estimate"
	"github.com/weir-metrics/weir/resize/replay"
)

var begin = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// entity returns a container with a reading every five minutes: of value, except where changed has another.
func entity(metric string, readings int, value float64, changed map[int]float64) trace.Entity {
	var s trace.Series
	for i := range readings {
		v, ok := changed[i]
		if !ok {
			v = value
		}
		s = append(s, trace.Reading{At: begin.Add(time.Duration(i) * 5 * time.Minute), Value: v})
	}
	return trace.Entity{Name: "web", Metrics: map[string]trace.Series{metric: s}}
}

// run returns the row of each estimator.
func run(t *testing.T, o replay.Options, entities ...trace.Entity) map[string]replay.Row {
	t.Helper()
	r, err := replay.Run(t.Context(), entities, o)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]replay.Row{}
	for _, row := range r.Rows {
		rows[row.Estimator] = row
	}
	return rows
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Half a core, always: weir requests 15% more, 575m, and the baseline 500m.
func TestConstantUse(t *testing.T) {
	o := replay.Defaults()
	o.Estimators = []string{estimate.OwnRule}
	row := run(t, o, entity("cpu", 289, 0.5, nil))[estimate.OwnRule]
	near(t, "slack", row.Slack, 75./575)
	near(t, "slack by day", row.SlackByDay, 75./575)
	near(t, "mean slack", row.SlackMean, 0.075)
	near(t, "overrun", row.Overrun, 0)
	near(t, "container-days", row.Days, 2./3)
	near(t, "changes", row.Changes, 0) // the first recommendation is none
	near(t, "saved", row.Saved, -0.075)
}

// A spike that nothing announces is above every estimator's request, and no estimator sees it
// before. Its request is that of a trace without the spike.
func TestNoEstimatorLooksAhead(t *testing.T) {
	const last = 288
	o := replay.Defaults()
	o.CPULimit = 2
	flat, spike := run(t, o, entity("cpu", last+1, 0.5, nil)), run(t, o, entity("cpu", last+1, 0.5, map[int]float64{last: 4}))
	for _, name := range o.Estimators {
		request := 0.5 / (1 - flat[name].Slack)
		seconds := flat[name].Days * 86400
		used := 0.5*(seconds-300) + 4*300
		near(t, name+" overrun", spike[name].Overrun, (4-request)*300/used)
		near(t, name+" overrun time", spike[name].OverrunTime, 300/seconds)
		near(t, name+" throttled", *spike[name].Throttled, (4-2*request)*300/used)
	}
}

// Memory doubles in the last third. weir sees only its limit, 120 MiB, when it is killed, and requests
// 20% more: 144, 173 and 208 MiB. An hour later it has seen 200 MiB, and requests 240 MiB.
func TestKillsForMemory(t *testing.T) {
	const mebibyte = 1 << 20
	grown := map[int]float64{}
	for i := 200; i <= 288; i++ {
		grown[i] = 200 * mebibyte
	}
	o := replay.Defaults()
	rows := run(t, o, entity("memory", 289, 100*mebibyte, grown))
	weir := rows[estimate.OwnRule]
	near(t, "kills", *weir.Kills*weir.Days, 3)
	near(t, "killed containers", *weir.KilledShare, 1)
	near(t, "changes", weir.Changes*weir.Days, 4)
	near(t, "kills of the baseline", *rows[replay.Baseline].Kills, 0)
	// VPA adds 100 MiB at a kill: one is enough.
	near(t, "kills of VPA", *rows["vpa"].Kills*rows["vpa"].Days, 1)

	o.MemoryLimit = 2 // 240 MiB
	weir = run(t, o, entity("memory", 289, 100*mebibyte, grown))[estimate.OwnRule]
	near(t, "kills below a limit of twice the request", *weir.Kills, 0)
	if weir.Overrun == 0 {
		t.Error("memory above the request is no overrun")
	}
}

// The requests in the trace are the baseline.
func TestRequestsInTrace(t *testing.T) {
	e := entity("cpu", 289, 0.5, nil)
	e.Metrics["cpu_request"] = trace.Series{{At: begin, Value: 2}, {At: begin.Add(16*time.Hour + time.Second), Value: 1}}
	row := run(t, replay.Defaults(), e)[replay.Baseline]
	near(t, "slack", row.Slack, 1-0.5/1.5)
}

// The request falls from 575m to 244m: by 5% or more seven times, by 30% twice.
func TestLeastShrink(t *testing.T) {
	falling := map[int]float64{}
	for i := 100; i <= 288; i++ {
		falling[i] = 0.5 - float64(i)/1000
	}
	o := replay.Defaults()
	o.Estimators, o.History = []string{estimate.OwnRule}, time.Hour
	often := run(t, o, entity("cpu", 289, 0.5, falling))[estimate.OwnRule]
	o.LeastShrink = 0.3
	seldom := run(t, o, entity("cpu", 289, 0.5, falling))[estimate.OwnRule]
	if seldom.Changes*seldom.Days != 2 || often.Changes*often.Days != 7 {
		t.Errorf("got %v changes, and %v with a least share of 30%%", often.Changes*often.Days, seldom.Changes*seldom.Days)
	}
}

// VPA's peaks of another length are named in the result.
func TestShortenedPeaksAreNamed(t *testing.T) {
	o := replay.Defaults()
	o.VPAPeaks = time.Hour
	if _, found := run(t, o, entity("memory", 289, 1e9, nil))["vpa (peaks of 1h)"]; !found {
		t.Error("the result names VPA as if its peaks were of 24 hours")
	}
}

// The picture has a mark of each rule in each panel, all within it, also without intervals and where nothing
// is missing. The baseline is not in it.
func TestPicture(t *testing.T) {
	o := replay.Defaults()
	two := func(metric string) []trace.Entity {
		return []trace.Entity{entity(metric, 400, 0.5, nil), entity(metric, 400, 0.7, map[int]float64{300: 2, 350: 3})}
	}
	for name, c := range map[string]struct {
		entities          []trace.Entity
		resamples, panels int
	}{
		"CPU and memory": {append(two("cpu"), two("memory")...), 100, 2}, "one container": {two("cpu")[:1], 100, 1}, "no intervals": {two("memory"), 0, 1},
	} {
		o.Resamples = c.resamples
		r, err := replay.Run(t.Context(), c.entities, o)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := r.WriteSVG(&out); err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		marks := 0
		for d := xml.NewDecoder(&out); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch e := token.(type) {
			case xml.CharData:
				names[string(e)]++
			case xml.StartElement:
				for _, a := range e.Attr {
					if v, err := strconv.ParseFloat(a.Value, 64); err == nil && (v < 0 || v > 460*float64(c.panels)) {
						t.Errorf("%s: %s of a %s is %v", name, a.Name.Local, e.Name.Local, v)
					}
				}
				if e.Name.Local == "circle" {
					marks++
				}
			}
		}
		if want := 2 * len(o.Estimators) * c.panels; marks != want { // in the plot and in the legend
			t.Errorf("%s: %d marks, want %d", name, marks, want)
		}
		for _, e := range o.Estimators {
			if e != string(estimate.ToolVPA) && names[e] != c.panels {
				t.Errorf("%s: %s is %d times in %d panels", name, e, names[e], c.panels)
			}
		}
		if names[replay.Baseline] > 0 {
			t.Errorf("%s: the baseline is in the picture", name)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*replay.Options){
		"an unknown estimator": func(o *replay.Options) { o.Estimators = []string{"guess"} },
		"no estimator":         func(o *replay.Options) { o.Estimators = nil },
		"no interval":          func(o *replay.Options) { o.Interval = 0 },
		"a long warm-up":       func(o *replay.Options) { o.Warmup = 1 },
		"no number":            func(o *replay.Options) { o.Until = math.NaN() },
		"a limit below":        func(o *replay.Options) { o.MemoryLimit = 0.5 },
		"no floor":             func(o *replay.Options) { o.Floors.CPU = resize.Amount{} },
	} {
		o := replay.Defaults()
		if change(&o); o.Validate() == nil {
			t.Errorf("%s: got no error", want)
		}
	}
}

// The same trace, options and seed have the same result, and CSV has all numbers.
func TestExcerpt(t *testing.T) {
	f, err := os.Open("testdata/trace.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entities, err := trace.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var text [2]bytes.Buffer
	for i := range text {
		r, err := replay.Run(t.Context(), entities, replay.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WriteCSV(&text[i]); err != nil {
			t.Fatal(err)
		}
	}
	if text[0].String() != text[1].String() {
		t.Error("two runs differ")
	}
	rows, err := csv.NewReader(&text[0]).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*(1+len(estimate.Names())); len(rows) != want {
		t.Errorf("got %d lines, want %d", len(rows), want)
	}
}
