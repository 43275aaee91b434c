package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
	"github.com/weir-metrics/weir/autoscaler/watcher"
)

// hpaKind is the kind of HorizontalPodAutoscalers; v1alpha1.Kind is the other kind.
const hpaKind = "HorizontalPodAutoscaler"

// objectKey names an object.
type objectKey struct{ kind, namespace, name string }

func (k objectKey) namespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: k.namespace, Name: k.name}
}

func (k objectKey) String() string { return k.kind + " " + k.namespace + "/" + k.name }

// scalingObject is an autoscaler as weir last read it. It is immutable.
type scalingObject struct {
	objectKey
	uid     types.UID
	created time.Time
	mode    string // a mode of package decisionreport
	spec    *autoscalingv2.HorizontalPodAutoscalerSpec
	note    string // how weir does not follow the specification
	// status is set for a HorizontalPodAutoscaler, autoscaler for an Autoscaler.
	status     *autoscalingv2.HorizontalPodAutoscalerStatus
	autoscaler *v1alpha1.Autoscaler
}

// canOwnTarget reports whether o can prevent other autoscalers from scaling its target.
func (o *scalingObject) canOwnTarget() bool { return o.mode != decisionreport.DryRun }

// precedes reports whether o has priority over another object with the same target: a
// HorizontalPodAutoscaler over an Autoscaler, then the older object, then the first by name.
func (o *scalingObject) precedes(other *scalingObject) bool {
	if o.kind != other.kind {
		return o.kind == hpaKind
	}
	if !o.created.Equal(other.created) {
		return o.created.Before(other.created)
	}
	return o.name < other.name
}

// newAutoscalerObject returns an Autoscaler for the catalog.
func newAutoscalerObject(a *v1alpha1.Autoscaler) *scalingObject {
	mode := decisionreport.Active
	if a.Spec.Mode == v1alpha1.DryRun {
		mode = decisionreport.DryRun
	}
	return &scalingObject{
		objectKey: objectKey{v1alpha1.Kind, a.Namespace, a.Name}, uid: a.UID, created: a.CreationTimestamp.Time, mode: mode,
		spec: &a.Spec.HorizontalPodAutoscalerSpec, autoscaler: a,
	}
}

// withSettings returns an Autoscaler as weir follows it with these settings. Unless they allow
// scaling to zero, minReplicas 0 counts as 1, because nothing would scale the target up from zero.
func (o *scalingObject) withSettings(s *autoscaler.Settings) *scalingObject {
	if s.ScaleToZero || *o.spec.MinReplicas > 0 {
		return o
	}
	followed, spec := *o, *o.spec
	spec.MinReplicas = new(int32(1))
	followed.spec, followed.note = &spec, "minReplicas of 0 counts as 1: the feature gate HPAScaleToZero is off, and weir runs without --autoscaler-scale-to-zero."
	return &followed
}

// newHPAObject returns a HorizontalPodAutoscaler for the catalog. If it is not shadowed, only its
// target is kept.
func newHPAObject(h *watcher.HPA, shadow bool) *scalingObject {
	o := &scalingObject{objectKey: objectKey{hpaKind, h.Namespace, h.Name}, uid: h.UID, created: h.CreationTimestamp.Time, mode: decisionreport.Shadow}
	if shadow {
		o.spec, o.status = &h.Spec, &h.Status
	} else {
		o.spec = &autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: h.Spec.ScaleTargetRef}
	}
	return o
}

// catalog keeps the objects that the watcher reports. It is safe for concurrent use.
type catalog struct {
	// enqueue is called with an object that is new, was deleted or has another specification.
	enqueue func(objectKey)

	mu struct {
		sync.Mutex
		objects map[objectKey]*scalingObject
		// byTarget has the objects of each target, by the target's namespace and name. The kind is not
		// part of the key, because it can be written in several ways.
		byTarget map[types.NamespacedName]map[objectKey]bool
		changes  map[objectKey][]controllerChange // changes of HorizontalPodAutoscalers that are not compared yet
		listed   map[string]bool                  // kinds that have been listed
	}
}

func newCatalog(enqueue func(objectKey)) *catalog {
	c := &catalog{enqueue: enqueue}
	c.mu.objects, c.mu.byTarget = map[objectKey]*scalingObject{}, map[types.NamespacedName]map[objectKey]bool{}
	c.mu.changes, c.mu.listed = map[objectKey][]controllerChange{}, map[string]bool{}
	return c
}

func (o *scalingObject) target() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.spec.ScaleTargetRef.Name}
}

// setObject stores a new or changed object, and enqueues it if a decision is due at once.
func (c *catalog) setObject(o *scalingObject) {
	c.mu.Lock()
	due := c.setLocked(o)
	c.mu.Unlock()
	if due {
		c.enqueue(o.objectKey)
	}
}

// setLocked does the work of setObject; the caller has locked c.mu. It reports whether a decision
// is due at once.
func (c *catalog) setLocked(o *scalingObject) (due bool) {
	old := c.mu.objects[o.objectKey]
	if old != nil && (old.uid != o.uid || old.target() != o.target()) {
		c.deleteLocked(old)
		old = nil
	}
	c.mu.objects[o.objectKey] = o
	if old == nil {
		t := o.target()
		if c.mu.byTarget[t] == nil {
			c.mu.byTarget[t] = map[objectKey]bool{}
		}
		c.mu.byTarget[t][o.objectKey] = true
		return true
	}
	if ch, ok := changeBetween(old, o); ok {
		c.mu.changes[o.objectKey] = append(c.mu.changes[o.objectKey], ch)
		return true
	}
	return old.mode != o.mode || !equality.Semantic.DeepEqual(old.spec, o.spec)
}

// changeBetween returns the change that a controller made between two states of its object. The
// status that is written with the change has the counts before and after it. If weir missed that
// status, a later one has the new count as both.
func changeBetween(old, now *scalingObject) (controllerChange, bool) {
	if now.status == nil || old.status == nil || now.status.LastScaleTime == nil || now.status.LastScaleTime.Equal(old.status.LastScaleTime) {
		return controllerChange{}, false
	}
	ch := controllerChange{
		At: now.status.LastScaleTime.Time, From: now.status.CurrentReplicas, To: now.status.DesiredReplicas,
		Targets: targetsText(now.spec, now.status.CurrentMetrics),
	}
	if ch.From == ch.To {
		ch.From, ch.Missed = old.status.DesiredReplicas, true
	}
	return ch, true
}

// deleteObject removes an object.
func (c *catalog) deleteObject(k objectKey) {
	c.mu.Lock()
	if o := c.mu.objects[k]; o != nil {
		c.deleteLocked(o)
	}
	c.mu.Unlock()
	c.enqueue(k)
}

func (c *catalog) deleteLocked(o *scalingObject) {
	delete(c.mu.objects, o.objectKey)
	delete(c.mu.changes, o.objectKey)
	t := o.target()
	delete(c.mu.byTarget[t], o.objectKey)
	if len(c.mu.byTarget[t]) == 0 {
		delete(c.mu.byTarget, t)
	}
}

// setListed records that all objects of a kind are known. After the first list of a kind all
// objects are enqueued, because no decision was made about those that came before.
func (c *catalog) setListed(kind string) {
	c.mu.Lock()
	first := !c.mu.listed[kind]
	c.mu.listed[kind] = true
	c.mu.Unlock()
	if first {
		c.enqueueAll()
	}
}

// enqueueAll enqueues all objects.
func (c *catalog) enqueueAll() {
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.mu.objects))
	c.mu.Unlock()
	for _, k := range keys {
		c.enqueue(k)
	}
}

// takeChanges returns an object, and the changes that its controller made since the last call. It
// returns nil if there is no such object.
func (c *catalog) takeChanges(k objectKey) (*scalingObject, []controllerChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := c.mu.changes[k]
	delete(c.mu.changes, k)
	return c.mu.objects[k], changes
}

// kindListed reports whether all objects of a kind are known.
func (c *catalog) kindListed(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.listed[kind]
}

// othersWithTarget returns the objects other than k that have a target with this name. The kind of
// the target may be another.
func (c *catalog) othersWithTarget(k objectKey, target types.NamespacedName) (list []*scalingObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.mu.byTarget[target] {
		if other != k {
			list = append(list, c.mu.objects[other])
		}
	}
	return list
}

// countKind returns the number of objects of a kind.
func (c *catalog) countKind(kind string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.mu.objects {
		if k.kind == kind {
			n++
		}
	}
	return n
}

// object returns an object; nil if there is none.
func (c *catalog) object(k objectKey) *scalingObject {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.objects[k]
}
