//go:build linux && e2e

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/bench/process"
)

// TestMain makes the test binary run as the processes that the test starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"kubelets", "floor"}, os.Args[1]) {
		main()
	}
	os.Exit(m.Run())
}

// TestSmoke runs weir for one short turn on a small cluster. It must serve
// every pod with exact rates and answer each kind of request, and everything
// that was started must have ended.
func TestSmoke(t *testing.T) {
	o := defaults()
	o.Shape = Shape{Nodes: 5, Pods: 4, Containers: 2, Start: time.Now()}
	o.Resolution, o.Warm, o.Window, o.Burst, o.Requests, o.Looks, o.Weir = 10*time.Second, 0, 0, 0, 2, 1, "../../../bin/weir"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w, err := newEnvironment(ctx, o, t.TempDir(), t.Logf)
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if w.kubelets != nil && w.kubelets.Alive() == nil {
			t.Error("the kubelets still run")
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	port, err := process.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	turn := &Turn{Values: map[string]float64{}, Requests: map[string][]float64{}}
	if err := w.turn(ctx, w.peers(port)[0], fmt.Sprintf("https://127.0.0.1:%d", port), 0, turn); err != nil {
		t.Fatal(err)
	}
	if got, want := turn.Values["served"], 20.0; got != want {
		t.Errorf("%v pods are served, want %v", got, want)
	}
	if got, compared := turn.Values["rate error"], turn.Values["rates compared"]; got > 1e-6 || compared != 40 {
		t.Errorf("the largest error of %v rates is %v, want at most 1e-6 of 40", compared, got)
	}
	for _, r := range kinds() {
		if len(turn.Requests[r.key]) < 2 {
			t.Errorf("%s: asked %d times, want 2", r.title, len(turn.Requests[r.key]))
		}
	}
}
