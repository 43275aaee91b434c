package parity

import (
	"context"
	"fmt"
	"reflect"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// Only this file uses what Kubernetes does not export: one reconcile, the
// classes of pods, and fields. It changes and copies nothing of Kubernetes.

//go:linkname reconcileKey k8s.io/kubernetes/pkg/controller/podautoscaler.(*HorizontalController).reconcileKey
func reconcileKey(a *podautoscaler.HorizontalController, ctx context.Context, key string) (deleted bool, err error)

//go:linkname groupPods k8s.io/kubernetes/pkg/controller/podautoscaler.groupPods
func groupPods(pods []*corev1.Pod, samples metrics.PodMetricsInfo, resource corev1.ResourceName, initialization, readinessDelay time.Duration) (ready int, unready, missing, ignored sets.Set[string])

// tolerances has the fields of podautoscaler.Tolerances.
type tolerances struct{ down, up float64 }

// recommendation and change have the fields of upstream's
// timestampedRecommendation and timestampedScaleEvent.
type recommendation struct {
	Replicas int32
	At       time.Time
}

type change struct {
	Replicas int32
	At       time.Time
	Outdated bool
}

func (t tolerances) upstream() podautoscaler.Tolerances {
	return *(*podautoscaler.Tolerances)(unsafe.Pointer(&t))
}

// field returns a field of the struct that object points to, exported or not,
// as a T. T must have the same layout.
func field[T any](object any, name string) *T {
	f := reflect.ValueOf(object).Elem().FieldByName(name)
	if !f.IsValid() {
		panic(fmt.Sprintf("%T has no field %s any more: adapt the test to this version of Kubernetes", object, name))
	}
	if size := reflect.TypeFor[T]().Size(); f.Type().Size() != size {
		panic(fmt.Sprintf("field %s of %T has %d bytes, not %d: adapt the test to this version of Kubernetes", name, object, f.Type().Size(), size))
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}

// dynamic returns a field with an interface type as another interface that its value implements.
func dynamic[T any](object any, name string) T {
	f := reflect.ValueOf(object).Elem().FieldByName(name)
	if !f.IsValid() {
		panic(fmt.Sprintf("%T has no field %s any more: adapt the test to this version of Kubernetes", object, name))
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface().(T)
}

// checkLayouts panics if a struct here differs from upstream's.
func checkLayouts() {
	same := func(mirror, original reflect.Type) {
		if mirror.Size() != original.Size() || mirror.NumField() != original.NumField() {
			panic(fmt.Sprintf("%v has changed: adapt %v", original, mirror))
		}
		for i := range mirror.NumField() {
			if m, o := mirror.Field(i), original.Field(i); m.Type != o.Type || m.Offset != o.Offset {
				panic(fmt.Sprintf("field %s of %v has changed: adapt %v", o.Name, original, mirror))
			}
		}
	}
	controller := reflect.TypeFor[podautoscaler.HorizontalController]()
	of := func(name string) reflect.Type {
		f, _ := controller.FieldByName(name)
		return f.Type.Elem().Elem()
	}
	same(reflect.TypeFor[tolerances](), reflect.TypeFor[podautoscaler.Tolerances]())
	same(reflect.TypeFor[recommendation](), of("recommendations"))
	same(reflect.TypeFor[change](), of("scaleUpEvents"))
	same(reflect.TypeFor[change](), of("scaleDownEvents"))
}
