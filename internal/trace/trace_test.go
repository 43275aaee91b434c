package trace_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/internal/trace"
)

var begin = time.Unix(1_700_000_000, 0).UTC()

// series returns readings at these minutes, with the minute as the value.
func series(minutes ...int) (s trace.Series) {
	for _, m := range minutes {
		s = append(s, trace.Reading{At: begin.Add(time.Duration(m) * time.Minute), Value: float64(m)})
	}
	return s
}

func TestRead(t *testing.T) {
	got, err := trace.Read(strings.NewReader("name,memory,time,cpu\na,10,1700000000,1\nb,,1700000000,2\na,,2023-11-14T22:14:20Z,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	second := begin.Add(time.Minute)
	want := []trace.Entity{
		{Name: "a", Metrics: map[string]trace.Series{"memory": {{At: begin, Value: 10}}, "cpu": {{At: begin, Value: 1}, {At: second, Value: 3}}}},
		{Name: "b", Metrics: map[string]trace.Series{"cpu": {{At: begin, Value: 2}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReadRefuses(t *testing.T) {
	for input, want := range map[string]string{
		"":                                     "column names",
		"time,cpu\n":                           "time, name and at least one metric",
		"time,name,cpu,cpu\n":                  "twice",
		"time,name,cpu\n":                      "no readings",
		"time,name,cpu\nnoon,a,1\n":            `line 2: the time "noon"`,
		"time,name,cpu\n1,a,-1\n":              `line 2: cpu "-1"`,
		"time,name,cpu\n1,a,NaN\n":             `line 2: cpu "NaN"`,
		"time,name,cpu\n1,a,1\n1,b,1\n1,a,1\n": `line 4: 1970-01-01T00:00:01Z is not after the time before it of "a"`,
		"time,name,cpu\n1,a\n":                 "wrong number of fields",
	} {
		if _, err := trace.Read(strings.NewReader(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%q): got %v, want an error with %q", input, err, want)
		}
	}
}

// Each reading after the start is next in exactly one step, and known in all later ones.
func TestForward(t *testing.T) {
	s := series(0, 1, 2, 3, 4, 5, 30, 31, 40)
	var next trace.Series
	var times []int
	for step := range s.Forward(2*time.Minute, 2*time.Minute) {
		times = append(times, int(step.Now.Sub(begin)/time.Minute))
		for _, r := range step.Known {
			if r.At.After(step.Now) {
				t.Errorf("at %v, %v is known before its time", step.Now, r.At)
			}
		}
		for _, r := range step.Next {
			if !r.At.After(step.Now) || r.At.After(step.Now.Add(2*time.Minute)) {
				t.Errorf("at %v, %v is next", step.Now, r.At)
			}
		}
		next = append(next, step.Next...)
	}
	if want := s[3:]; !reflect.DeepEqual(next, want) {
		t.Errorf("got %v, want %v", next, want)
	}
	if want := []int{2, 4, 28, 30, 38}; !reflect.DeepEqual(times, want) {
		t.Errorf("steps at minutes %v, want %v", times, want)
	}
}

// A gap counts as two and a half steps.
func TestDurations(t *testing.T) {
	got := series(0, 2, 4, 6, 60).Durations()
	want := []time.Duration{2 * time.Minute, 2 * time.Minute, 2 * time.Minute, 2 * time.Minute, 5 * time.Minute}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// For the mean of values from a normal-like population, the interval is about two standard errors to
// each side; the same seed gives the same one.
func TestBootstrap(t *testing.T) {
	values := make([]float64, 400)
	for i := range values {
		values[i] = float64(i % 20) // mean 9.5, standard deviation 5.77, error of the mean 0.288
	}
	mean := func(drawn []int) (sum float64) {
		for _, i := range drawn {
			sum += values[i]
		}
		return sum / float64(len(drawn))
	}
	got := trace.Bootstrap(len(values), 1000, 7, mean)
	if again := trace.Bootstrap(len(values), 1000, 7, mean); *again != *got {
		t.Errorf("the same seed: got %v, then %v", got, again)
	}
	if got.Low < 8.8 || got.Low > 9.1 || got.High < 9.9 || got.High > 10.2 {
		t.Errorf("got %v, want about 8.93 to 10.07", *got)
	}
	if one := trace.Bootstrap(1, 1000, 7, mean); one != nil {
		t.Errorf("one entity: got %v, want no interval", *one)
	}
}
