package controller

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler/scaleclient"
	"github.com/weir-metrics/weir/internal/recording"
	"github.com/weir-metrics/weir/metric"
)

// recordInterval is the time after which an unchanged target is recorded again.
const recordInterval = 5 * time.Minute

// recorded is the last recorded state of a target, and the time of the record. target is nil if nothing
// was recorded.
type recorded struct {
	target *recording.ScaleTarget
	at     time.Time
}

// recordTarget records the target of an object if it has changed. owns is set if the object scales
// it. If another object scales the target, only its count is recorded, and only if weir does not
// handle that object.
func (c *Controller) recordTarget(o *scalingObject, e *entry, l *targetState, owns bool) {
	if c.opts.RecordTarget == nil {
		return
	}
	switch {
	case !owns && slices.ContainsFunc(c.catalog.othersWithTarget(o.objectKey, o.target()), c.recordsSpec):
		e.recorded = recorded{}
		return
	case scaleclient.IsPermanent(l.ScaleErr):
		c.recordGone(o.objectKey, e)
		return
	case l.ScaleErr != nil:
		return
	}
	t := &recording.ScaleTarget{
		Group: l.handle.Resource.Group, Resource: l.handle.Resource.Resource, Namespace: metric.Namespace(o.namespace), Name: l.handle.Name,
		Replicas: l.Scale.SpecReplicas, Current: l.Scale.StatusReplicas, Selector: l.Scale.Selector,
	}
	if owns {
		if spec, err := json.Marshal(o.spec); err == nil { // an autoscaler is recorded only with its spec
			t.HPA, t.Spec = o.name, spec
		}
	}
	if reflect.DeepEqual(e.recorded.target, t) && l.Now.Sub(e.recorded.at) < recordInterval {
		return
	}
	if old := e.recorded.target; old != nil && (old.Group != t.Group || old.Resource != t.Resource || old.Name != t.Name) {
		c.recordGone(o.objectKey, e)
	}
	e.recorded = recorded{t, l.Now}
	c.opts.RecordTarget(t, l.Now)
}

// recordsSpec reports whether an object's target is recorded with its specification.
func (c *Controller) recordsSpec(o *scalingObject) bool {
	return o.canOwnTarget() && c.handles(o.objectKey)
}

// recordGone records that the target of k is no longer followed, unless another object has the same
// target.
func (c *Controller) recordGone(k objectKey, e *entry) {
	t := e.recorded.target
	e.recorded = recorded{}
	if t == nil || slices.ContainsFunc(c.catalog.othersWithTarget(k, types.NamespacedName{Namespace: k.namespace, Name: t.Name}), c.recordsSpec) {
		return
	}
	c.opts.RecordTarget(&recording.ScaleTarget{Group: t.Group, Resource: t.Resource, Namespace: t.Namespace, Name: t.Name, Gone: true}, time.Now())
}
