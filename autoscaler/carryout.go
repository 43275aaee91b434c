package autoscaler

import (
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
)

// Deeds are what carries a decision out.
type Deeds struct {
	// Scale writes a count to the target's scale, as it was last read. A conflict
	// (HTTP 409) is tried again, at most five times, 10 ms apart.
	Scale func(replicas int32) error
	// Refresh reads the scale again after a failed write, so that the next may
	// succeed. Its error is for whoever wants to log it. May be nil.
	Refresh func() error
	// Status writes a status that differs from the one the decision was given. It may
	// be nil where none is kept.
	Status func(*autoscalingv2.HorizontalPodAutoscalerStatus) error
}

// CarryOut writes the decided count if there is one to write, concludes, and writes
// the status if it changed. Events are in the order Kubernetes gives them. It waits
// between tries; all else here is pure.
//
// A status that could not be written is an error; the memory is to be kept even so,
// for the scale was written before.
func (d *Decision) CarryOut(deeds Deeds) Done {
	var err error
	if d.Rescale {
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := deeds.Scale(d.Desired)
			if err != nil && deeds.Refresh != nil {
				_ = deeds.Refresh()
			}
			return err
		})
	}
	done := d.Conclude(err)
	if deeds.Status == nil || SameStatus(d.old, &done.Status) {
		return done
	}
	unwritten := deeds.Status(&done.Status)
	if unwritten == nil {
		return done
	}
	at := len(done.Events)
	if d.ends == noMetrics {
		at-- // Kubernetes tells of the metrics last
	}
	done.Events = slices.Insert(slices.Clone(done.Events), at,
		Event{corev1.EventTypeWarning, "FailedUpdateStatus", unwritten.Error()})
	if d.ends == decided && err == nil {
		// Otherwise the error that ended the decision is the more telling one.
		done.Err = fmt.Errorf("write the status of %s: %w", d.Object, unwritten)
	}
	return done
}
