package app

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-metrics/weir/sources/kubelet"
)

// A warning appears once each time there begin to be more kubelets than connections that can be
// kept open.
func TestCrowded(t *testing.T) {
	const kept = 100
	core, said := observer.New(zap.WarnLevel)
	k := &kubelets{plan: kubeletPlan{Options: kubelet.Options{MaxIdle: kept}}, log: zap.New(core)}
	for i, targets := range []int{kept, kept + 1, kept + 1, kept, kept + 1} {
		k.warnIfCrowded(targets)
		if want := []int{0, 1, 1, 1, 2}[i]; said.Len() != want {
			t.Fatalf("after %d looks, the last at %d kubelets of which %d can be kept: %d lines, want %d", i+1, targets, kept, said.Len(), want)
		}
	}
}
