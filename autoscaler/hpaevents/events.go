package hpaevents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The reasons of the Events.
const (
	// MetricsMissing reports that pods have had no CPU or memory for a while.
	MetricsMissing = "MetricsMissing"
	// MetricsComplete reports that all pods have CPU and memory again.
	MetricsComplete = "MetricsComplete"
)

const (
	controller = "weir.dev/hpa-events"
	action     = "MeasurePods"
	// instanceLimit is the API server's limit on the length of an instance's name.
	instanceLimit = 128
	// writeTimeout bounds the write of one Event.
	writeTimeout = 10 * time.Second
)

func (p *pendingEvent) reason() string {
	if p.complete {
		return MetricsComplete
	}
	return MetricsMissing
}

// eventName returns the name of an Event that is written at a time for the first time.
func eventName(hpa string, first time.Time) string {
	suffix := fmt.Sprintf(".weir.%x", first.UnixNano())
	if limit := 253 - len(suffix); len(hpa) > limit {
		hpa = strings.TrimRight(hpa[:limit], "-.")
	}
	return hpa + suffix
}

// event returns n in the form of a new Event.
func (p *pendingEvent) event(instance string) *eventsv1.Event {
	kind := corev1.EventTypeWarning
	if p.complete {
		kind = corev1.EventTypeNormal
	}
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.hpa.Namespace, Name: eventName(p.hpa.Name, p.at)},
		Regarding: corev1.ObjectReference{
			APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler",
			Namespace: p.hpa.Namespace, Name: p.hpa.Name, UID: p.hpa.uid,
		},
		EventTime:           metav1.NewMicroTime(p.at),
		ReportingController: controller,
		ReportingInstance:   instance[:min(len(instance), instanceLimit)],
		Action:              action,
		Type:                kind, Reason: p.reason(), Note: p.note,
	}
}

// writeEvent creates n as a new Event, or increases the count of the Event with the same text.
// kubectl describe then shows one line with a count.
func (r *Reporter) writeEvent(ctx context.Context, n *pendingEvent) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	events := r.opts.Client.EventsV1().Events(n.hpa.Namespace)
	if n.count > 1 {
		name := eventName(n.hpa.Name, n.first)
		patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: int32(n.count), LastObservedTime: metav1.NewMicroTime(n.at)}})
		if err != nil {
			return fmt.Errorf("encode the count of Event %s: %w", name, err)
		}
		if _, err = events.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			return nil
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("count up Event %s: %w", name, err)
		} // the Event has expired, so a new one is created
	}
	e := n.event(r.opts.Instance)
	if _, err := events.Create(ctx, e, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Event %s: %w", e.Name, err)
	}
	return nil
}
