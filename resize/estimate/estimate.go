// Package estimate has estimators of requests that other tools use, each written from its published
// source, so that their recommendations can be compared on one history:
//
//   - VPA: the recommender of Kubernetes' Vertical Pod Autoscaler
//   - KRR: the simple strategy of Robusta's Kubernetes Resource Recommender
//   - Autopilot: the moving windows of Google's Autopilot
//
// Adaptive is weir's own. None of them has a floor: package resize has one for all.
//
// The caller feeds an Estimator with the history of one container of a workload, of all its pods, and
// asks it for the requests at a time:
//
//	e := estimate.NewVPA(estimate.VPADefaults())
//	e.Observe(estimate.Sample{Pod: "web-1", Resource: resize.CPU, UsagePoint: point})
//	requests := e.Recommend(now)
//
// The package is pure: an estimator has no clock, and the same history has the same result. It decides
// nothing about a running pod: that is what package resize is for.
//
// Files: estimate.go has the Estimator; vpa.go, krr.go, autopilot.go and adaptive.go have one estimator each;
// histogram.go has the histogram of VPA.
package estimate

import (
	"math"
	"time"

	"github.com/weir-metrics/weir/resize"
)

// Estimator recommends the requests of one container of a workload.
type Estimator interface {
	// Observe adds a sample. Samples and OOM kills come in the order of their times. Impossible values
	// are ignored.
	Observe(s Sample)
	// ObserveOOMKill adds an OOM kill.
	ObserveOOMKill(k OOMKill)
	// Recommend returns the requests that fit what was observed. An amount is not set if too little was
	// observed. The time is not before that of the last sample or of the last call.
	Recommend(now time.Time) resize.Amounts
}

// Sample is what the container of one pod used of a resource.
type Sample struct {
	// Pod identifies the pod. Use its UID where another pod may get the same name.
	Pod      string
	Resource resize.Resource
	resize.UsagePoint
}

// OOMKill is a kill of the container because it ran out of memory.
type OOMKill struct {
	Pod string
	At  time.Time
	// Request and Limit are the container's memory request and limit at that time, in bytes; zero if it
	// had none.
	Request, Limit int64
}

// isPossible reports whether a container can have used so much.
func (s *Sample) isPossible() bool {
	const most = 1 << 53
	return s.Value >= 0 && s.Value <= most
}

// roundUp returns a recommendation in cores or bytes as an amount.
func roundUp(r resize.Resource, value float64) resize.Amount {
	if r == resize.CPU {
		value *= 1000
	}
	return resize.Of(int64(ceil(value)))
}

// ceil rounds up. A rounding error in the last bits of value does not make the result larger.
func ceil(value float64) float64 { return math.Ceil(value * (1 - 1e-12)) }
