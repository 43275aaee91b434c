package autoscaler

import (
	"errors"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

type conclusion struct{}

// Decide returns what to do with a target now.
func Decide(in *Input) *Decision { return &Decision{Err: errors.New("not yet")} }

// Conclude returns the status, memory and events after the decision was carried out:
// err is why the new count could not be written, nil if it was or none was to be.
func (d *Decision) Conclude(err error) Done { return Done{} }

// Scaled returns the memory after a change from one count to another, made at a
// time, for the policies of behavior, which may be nil.
func (m Memory) Scaled(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, at time.Time) Memory {
	return m
}
