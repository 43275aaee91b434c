package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/internal/trace"
)

// What trace.Read accepts, write writes so that trace.Read reads the same.
func FuzzRead(f *testing.F) {
	f.Add("time,name,cpu,memory\n1700000000,a,0.5,\n2023-11-14T22:14:20Z,a,1,2e9\n")
	f.Fuzz(func(t *testing.T, input string) {
		first, err := trace.Read(strings.NewReader(input))
		if err != nil {
			return
		}
		measured := first[:0]
		for _, e := range first {
			for _, s := range e.Metrics {
				for i := range s {
					if !(s[i].Value >= 0) || i > 0 && !s[i].At.After(s[i-1].At) {
						t.Fatalf("%q: impossible reading %v", e.Name, s[i])
					}
				}
			}
			// write has no line for a name without a value, and CSV turns \r\n within quotes into \n.
			if len(e.Metrics) > 0 && !strings.Contains(input, "\r") {
				measured = append(measured, e)
			}
		}
		if len(measured) == 0 {
			return
		}
		var text bytes.Buffer
		if err := write(&text, measured); err != nil {
			t.Fatal(err)
		}
		again, err := trace.Read(&text)
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if !reflect.DeepEqual(measured, again) {
			t.Errorf("got %v, want %v", again, measured)
		}
	})
}
