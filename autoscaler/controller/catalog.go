package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-metrics/weir/autoscaler/decisionreport"
	"github.com/weir-metrics/weir/autoscaler/v1alpha1"
)

// hpaKind is the other kind of object; v1alpha1.Kind is the first.
const hpaKind = "HorizontalPodAutoscaler"

// key names an object.
type key struct{ kind, namespace, name string }

func (k key) named() types.NamespacedName {
	return types.NamespacedName{Namespace: k.namespace, Name: k.name}
}

func (k key) String() string { return k.kind + " " + k.namespace + "/" + k.name }

// object is an autoscaler as it was last seen. It is never changed.
type object struct {
	key
	uid     types.UID
	created time.Time
	mode    string // one of package report's
	spec    *autoscalingv2.HorizontalPodAutoscalerSpec
	note    string // what is done otherwise than spec's author may think
	// status is that of a HorizontalPodAutoscaler, scaler the Autoscaler: the one
	// or the other.
	status *autoscalingv2.HorizontalPodAutoscalerStatus
	scaler *v1alpha1.Autoscaler
}

// owns reports whether o may hold its target against others.
func (o *object) owns() bool { return o.mode != decisionreport.DryRun }

// before reports whether o goes before another object in the right to their target:
// a HorizontalPodAutoscaler before an Autoscaler, and the older of a kind. Of those
// that were made in one second it is the first by name.
func (o *object) before(other *object) bool {
	if o.kind != other.kind {
		return o.kind == hpaKind
	}
	if !o.created.Equal(other.created) {
		return o.created.Before(other.created)
	}
	return o.name < other.name
}

// catalog is what the reflectors have seen. Its methods may be called by several
// goroutines.
type catalog struct {
	// wake is told an object that is new, gone, or asks for something else.
	wake func(key)

	mu struct {
		sync.Mutex
		objects map[key]*object
		// byTarget are the objects that name a target, by namespace and name: its
		// kind may be spelt in several ways.
		byTarget map[types.NamespacedName]map[key]bool
		changes  map[key][]change // of HorizontalPodAutoscalers, not yet compared
		listed   map[string]bool  // kinds that have been listed
	}
}

func newCatalog(wake func(key)) *catalog {
	c := &catalog{wake: wake}
	c.mu.objects, c.mu.byTarget = map[key]*object{}, map[types.NamespacedName]map[key]bool{}
	c.mu.changes, c.mu.listed = map[key][]change{}, map[string]bool{}
	return c
}

func (o *object) target() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.spec.ScaleTargetRef.Name}
}

// put notes a new or changed object.
func (c *catalog) put(o *object) {
	c.mu.Lock()
	wake := c.set(o)
	c.mu.Unlock()
	if wake {
		c.wake(o.key)
	}
}

// set is put under the lock. It reports whether somebody should look at once.
func (c *catalog) set(o *object) (wake bool) {
	old := c.mu.objects[o.key]
	if old != nil && (old.uid != o.uid || old.target() != o.target()) {
		c.unset(old)
		old = nil
	}
	c.mu.objects[o.key] = o
	if old == nil {
		t := o.target()
		if c.mu.byTarget[t] == nil {
			c.mu.byTarget[t] = map[key]bool{}
		}
		c.mu.byTarget[t][o.key] = true
		return true
	}
	if ch, ok := changeOf(old, o); ok {
		c.mu.changes[o.key] = append(c.mu.changes[o.key], ch)
		return true
	}
	return old.mode != o.mode || !equality.Semantic.DeepEqual(old.spec, o.spec)
}

// changeOf returns what a controller did to the target between two states of its
// object. The status it writes then has the count before and the one after.
// After a gap there may be only a later one, of which both are the count after.
func changeOf(old, now *object) (change, bool) {
	if now.status == nil || old.status == nil || now.status.LastScaleTime == nil || now.status.LastScaleTime.Equal(old.status.LastScaleTime) {
		return change{}, false
	}
	ch := change{
		At: now.status.LastScaleTime.Time, From: now.status.CurrentReplicas, To: now.status.DesiredReplicas,
		Targets: targetsText(now.spec, now.status.CurrentMetrics),
	}
	if ch.From == ch.To {
		ch.From, ch.Missed = old.status.DesiredReplicas, true
	}
	return ch, true
}

// drop notes that an object is gone.
func (c *catalog) drop(k key) {
	c.mu.Lock()
	if o := c.mu.objects[k]; o != nil {
		c.unset(o)
	}
	c.mu.Unlock()
	c.wake(k)
}

func (c *catalog) unset(o *object) {
	delete(c.mu.objects, o.key)
	delete(c.mu.changes, o.key)
	t := o.target()
	delete(c.mu.byTarget[t], o.key)
	if len(c.mu.byTarget[t]) == 0 {
		delete(c.mu.byTarget, t)
	}
}

// replace notes that these are all objects of a kind.
func (c *catalog) replace(kind string, all []*object) {
	named := make(map[key]bool, len(all))
	var wake []key
	c.mu.Lock()
	for _, o := range all {
		named[o.key] = true
		if c.set(o) {
			wake = append(wake, o.key)
		}
	}
	for k, o := range c.mu.objects {
		if k.kind == kind && !named[k] {
			c.unset(o)
			wake = append(wake, k)
		}
	}
	if !c.mu.listed[kind] {
		// Whoever came before all were known was turned away.
		c.mu.listed[kind] = true
		wake = slices.Collect(maps.Keys(c.mu.objects))
	}
	c.mu.Unlock()
	for _, k := range wake {
		c.wake(k)
	}
}

// get returns an object and the changes that its controller made since the last
// call; nil if there is none.
func (c *catalog) get(k key) (*object, []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes := c.mu.changes[k]
	delete(c.mu.changes, k)
	return c.mu.objects[k], changes
}

// listed reports whether all objects of a kind are known.
func (c *catalog) listed(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.listed[kind]
}

// others returns the objects other than k whose target may be the one of a name.
func (c *catalog) others(k key, target types.NamespacedName) (list []*object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.mu.byTarget[target] {
		if other != k {
			list = append(list, c.mu.objects[other])
		}
	}
	return list
}

// count returns how many objects of a kind there are.
func (c *catalog) count(kind string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.mu.objects {
		if k.kind == kind {
			n++
		}
	}
	return n
}

// peek returns an object; nil if there is none.
func (c *catalog) peek(k key) *object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.objects[k]
}
