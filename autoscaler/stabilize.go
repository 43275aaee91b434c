package autoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// stabilizePlainly returns the highest recommendation of the downscale window, for a
// specification without a behavior. One exactly as old as the window still counts.
func (d *Decision) stabilizePlainly(in *Input, desired int32) int32 {
	window := in.Settings.DownscaleStabilization
	cutoff := in.Now.Add(-window)
	best := Recommendation{desired, in.Now}
	place := -1
	for i, r := range d.Memory.Recommendations {
		if r.At.Before(cutoff) {
			place = i
		} else if r.Replicas > best.Replicas {
			best = r
		}
	}
	d.Memory = d.Memory.recommended(place, Recommendation{desired, in.Now})
	d.step(Step{Kind: StepStabilizeDown, From: desired, To: best.Replicas, Window: window, At: best.At, Limit: best.Replicas})
	d.stabilized(best.Replicas != desired, true)
	return best.Replicas
}

// stabilize returns what the windows of a behavior leave of a count: on the way up
// the lowest recommendation of its window, on the way down the highest, and never
// past the current count. One exactly as old as the window no longer counts.
func (d *Decision) stabilize(in *Input, desired int32) int32 {
	up, down := upWindow(in.Spec.Behavior), downWindow(in.Spec.Behavior, in.Settings)
	upCutoff, downCutoff := in.Now.Add(-up), in.Now.Add(-down)
	low := Recommendation{desired, in.Now}
	high := low
	place := -1
	for i, r := range d.Memory.Recommendations {
		if r.At.After(upCutoff) && r.Replicas < low.Replicas {
			low = r
		}
		if r.At.After(downCutoff) && r.Replicas > high.Replicas {
			high = r
		}
		if r.At.Before(upCutoff) && r.At.Before(downCutoff) {
			place = i
		}
	}
	d.Memory = d.Memory.recommended(place, Recommendation{desired, in.Now})

	to := min(max(d.Current, low.Replicas), high.Replicas)
	switch {
	case desired > d.Current:
		d.step(Step{Kind: StepStabilizeUp, From: desired, To: to, Window: up, At: low.At, Limit: low.Replicas})
	case desired < d.Current:
		d.step(Step{Kind: StepStabilizeDown, From: desired, To: to, Window: down, At: high.At, Limit: high.Replicas})
	}
	d.stabilized(to != desired, desired < d.Current)
	return to
}

// stabilized sets the condition that tells of stabilization.
func (d *Decision) stabilized(changed, down bool) {
	reason, message := "ReadyForNewScale", "no earlier recommendation stands against the count asked for"
	switch {
	case changed && down:
		reason, message = "ScaleDownStabilized", "a recent recommendation was higher: the highest of the window holds"
	case changed:
		reason, message = "ScaleUpStabilized", "a recent recommendation was lower: the lowest of the window holds"
	}
	d.set(autoscalingv2.AbleToScale, corev1.ConditionTrue, reason, message)
}

func upWindow(b *autoscalingv2.HorizontalPodAutoscalerBehavior) time.Duration {
	if w := upRules(b).StabilizationWindowSeconds; w != nil {
		return seconds(*w)
	}
	return 0
}

func downWindow(b *autoscalingv2.HorizontalPodAutoscalerBehavior, s *Settings) time.Duration {
	if w := downRules(b).StabilizationWindowSeconds; w != nil {
		return seconds(*w)
	}
	return seconds(toInt32(s.DownscaleStabilization.Seconds()))
}
