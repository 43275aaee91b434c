package controller

import (
	"encoding/json"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler/target"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/recording"
)

// recordAgain is after how long a target is recorded again that did not change.
const recordAgain = 5 * time.Minute

// recorded is what was recorded of a target, and when; at is zero if nothing was.
type recorded struct {
	target *recording.Target
	spec   *autoscalingv2.HorizontalPodAutoscalerSpec
	at     time.Time
}

// record has the target of an object recorded, if there is something to say. owns
// says that the object scales it: of others' targets only the count is recorded,
// and that only where nobody else is looked at who tells more.
func (c *Controller) record(o *object, e *entry, l *look, owns bool) {
	if c.opts.Record == nil {
		return
	}
	switch {
	case !owns && slices.ContainsFunc(c.catalog.others(o.key, o.target()), c.tells):
		e.recorded = recorded{}
		return
	case target.Final(l.ScaleErr):
		c.unrecord(o.key, e)
		return
	case l.ScaleErr != nil:
		return
	}
	t := &recording.Target{
		Group: l.handle.Resource.Group, Resource: l.handle.Resource.Resource, Namespace: metric.Namespace(o.namespace), Name: l.handle.Name,
		Replicas: l.Scale.Spec, Current: l.Scale.Status, Selector: l.Scale.Selector,
	}
	if owns {
		t.HPA = o.name
	}
	r := &e.recorded
	old := r.target
	if old != nil && (old.Group != t.Group || old.Resource != t.Resource || old.Name != t.Name) {
		c.unrecord(o.key, e)
		old = nil
	}
	if old != nil && old.Replicas == t.Replicas && old.Current == t.Current && old.Selector == t.Selector && old.HPA == t.HPA &&
		equality.Semantic.DeepEqual(r.spec, o.spec) && l.Now.Sub(r.at) < recordAgain {
		return
	}
	if owns {
		var err error
		if t.Spec, err = json.Marshal(o.spec); err != nil {
			t.HPA = "" // it cannot be told what it asks for
		}
	}
	*r = recorded{t, o.spec, l.Now}
	c.opts.Record(t, l.Now)
}

// tells reports whether an object has its target recorded with what it asks for.
func (c *Controller) tells(o *object) bool { return o.owns() && c.concerns(o.key) }

// unrecord has it recorded that the target of k is no longer followed; unless
// somebody else goes on with it.
func (c *Controller) unrecord(k key, e *entry) {
	t := e.recorded.target
	e.recorded = recorded{}
	if t == nil || slices.ContainsFunc(c.catalog.others(k, types.NamespacedName{Namespace: k.namespace, Name: t.Name}), c.tells) {
		return
	}
	c.opts.Record(&recording.Target{Group: t.Group, Resource: t.Resource, Namespace: t.Namespace, Name: t.Name, Gone: true}, time.Now())
}
