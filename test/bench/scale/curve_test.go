//go:build linux

package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	f := func(want []curve, args ...string) {
		t.Helper()
		p, err := parse(args)
		if err != nil || !reflect.DeepEqual(p.curves, want) {
			t.Errorf("parse(%q): got curves %v and error %v, want %v", args, p.curves, err, want)
		}
	}
	one := func(resolution time.Duration, nodes ...int) curve { return curve{Resolution: resolution, nodes: nodes} }
	f([]curve{one(15*time.Second, 1000)}, "--nodes", "1000")
	f([]curve{one(time.Minute, 5000, 6000)}, "--nodes", "5000,6000", "--resolution", "60s")
	f([]curve{one(15*time.Second, 1000), one(time.Minute, 2000)}, "--curves", "15s:1000 60s:2000")
	f([]curve{one(15*time.Second, 100, 1000, 5000), one(time.Minute, 5000, 15000, 30000)})
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"100", "15s:", "15s:0", "15s:1,,2", "15:1", "10ms:1"} {
		if c, err := parseCurve(text); err == nil || !strings.Contains(err.Error(), `curve "`+text+`": want`) {
			t.Errorf("parseCurve(%q): got %v and error %v", text, c.nodes, err)
		}
	}
}

// TestTimes checks that windows are whole resolutions and long enough.
func TestTimes(t *testing.T) {
	f := func(resolution, settle, window time.Duration) {
		t.Helper()
		if gotSettle, gotWindow := (plan{}).times(resolution); gotSettle != settle || gotWindow != window {
			t.Errorf("every %v: settles for %v and is measured for %v, want %v and %v", resolution, gotSettle, gotWindow, settle, window)
		}
	}
	f(15*time.Second, time.Minute, 90*time.Second)
	f(20*time.Second, time.Minute, 80*time.Second)
	f(time.Minute, 2*time.Minute, 2*time.Minute)
	if s, w := (plan{settle: 1, window: 2}).times(time.Minute); s != 1 || w != 2 {
		t.Errorf("got %v and %v, want what was asked for", s, w)
	}
}
