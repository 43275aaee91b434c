package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
)

func TestLevels(t *testing.T) {
	for _, test := range []struct {
		level string
		v     int
		want  string
	}{
		{"info", 0, "info warn error"},
		{"debug", 0, "debug info warn error"},
		{"error", 0, "error"},
		{"info", 1, "debug info warn error"},
		{"info", 4, "library debug info warn error"},
	} {
		var out bytes.Buffer
		log, _, err := New(Options{Level: test.level, Format: "json", Verbosity: test.v}, &out)
		if err != nil {
			t.Fatal(err)
		}
		(&sink{log: log}).Info(2, "library")
		log.Debug("debug")
		log.Info("info")
		log.Warn("warn")
		log.Error("error")
		var got []string
		for line := range strings.Lines(out.String()) {
			var e struct{ Msg string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			got = append(got, e.Msg)
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("--log-level=%s -v=%d logs %q, want %q", test.level, test.v, s, test.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, o := range map[string]Options{
		`--log-level cannot be "verbose": there are debug, info, warn, error`: {Level: "verbose", Format: "json"},
		`--log-format cannot be "jsn": did you mean "json"?`:                  {Level: "info", Format: "jsn"},
		`-v cannot be 11: it goes from 0 to 10`:                               {Level: "info", Format: "json", Verbosity: 11},
	} {
		if _, _, err := New(o, &bytes.Buffer{}); err == nil || err.Error() != want {
			t.Errorf("New(%+v)\n got: %v\nwant: %s", o, err, want)
		}
	}
}

func TestLevelsOfLoggers(t *testing.T) {
	var out bytes.Buffer
	log, _, err := New(Options{Level: "info", Format: "json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	Logr(log).WithName("leader").Info("the leader is known", "self", true)
	Logr(log).V(1).Info("in detail")
	logr.New(&sink{log: log}).Info("a library speaks")
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"level":"info"`) || !strings.Contains(got, `"msg":"the leader is known","self":true`) {
		t.Errorf("logged %s\nwant weir's own line alone", got)
	}
}

func TestSinkKeepsWhatIsSaid(t *testing.T) {
	var out bytes.Buffer
	log, _, err := New(Options{Level: "info", Format: "json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	logr.New(&sink{log: log}).WithName("reflector").WithValues("type", "Pod", "odd").Error(errors.New("refused"), "list", "try", 3)
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"level": "warn", "logger": "reflector", "msg": "list", "type": "Pod", "extra": "odd", "try": 3.0, "error": "refused",
	} {
		if got[key] != want {
			t.Errorf("%s = %v, want %v", key, got[key], want)
		}
	}
}

// An event that concerns each of many nodes is logged a hundred times, and then one line says that more
// are left out. Debug messages are not left out, and neither are others.
func TestRepeatedMessages(t *testing.T) {
	const times = 10_000
	var out bytes.Buffer
	log, _, err := New(Options{Level: "debug", Format: "console"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range times {
		log.With(zap.Int("node", i)).Warn("the source fails")
		log.Debug("the source is gone")
	}
	log.Warn("another")
	f := func(want int, part string) {
		t.Helper()
		if got := strings.Count(out.String(), part); got != want {
			t.Errorf("%d lines have %q, want %d", got, part, want)
		}
	}
	f(maxRepeats, "WARN the source fails")
	f(times, "the source is gone")
	f(1, "WARN another")
	f(1, `WARN more than 100 lines within a minute have the same message: the others are left out {"repeated": "the source fails"}`)
}
