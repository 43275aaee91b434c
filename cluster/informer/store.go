package informer

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// store is the store that a reflector writes to. It keeps nothing: each object becomes facts at
// once and goes to the queue.
type store[O metav1.Object, F any] struct {
	queue   *queue
	convert func(O) F
	set     func(*pending, F) // records a new or changed object
	del     func(*pending, F) // records that an object is gone
	all     func(*pending)    // records that the following objects are all
	// now returns the time. It is nil for objects that do not change the time of the facts.
	now func() time.Time
}

// converted is facts with their object's name. A reflector that streams its first list collects it
// before it passes it on. Collected as converted, the list is small.
type converted[F any] struct {
	metav1.ObjectMeta
	facts F
}

func (s *store[O, F]) facts(obj any) (F, error) {
	switch o := obj.(type) {
	case *converted[F]:
		return o.facts, nil
	case O:
		return s.convert(o), nil
	}
	var none F
	return none, fmt.Errorf("convert %T: unexpected type", obj)
}

// Transformer implements cache.TransformingStore.
func (s *store[O, F]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		o, ok := obj.(O)
		if !ok {
			return obj, nil // already converted
		}
		meta := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}
		return &converted[F]{ObjectMeta: meta, facts: s.convert(o)}, nil
	}
}

// Add implements cache.ReflectorStore.
func (s *store[O, F]) Add(obj any) error { return s.each(s.set, obj) }

// Update implements cache.ReflectorStore.
func (s *store[O, F]) Update(obj any) error { return s.each(s.set, obj) }

// Delete implements cache.ReflectorStore.
func (s *store[O, F]) Delete(obj any) error { return s.each(s.del, obj) }

// at returns the time of what is received now, for queue.change.
func (s *store[O, F]) at() time.Time {
	if s.now == nil {
		return time.Time{}
	}
	return s.now()
}

func (s *store[O, F]) each(do func(*pending, F), obj any) error {
	f, err := s.facts(obj)
	if err != nil {
		return err
	}
	s.queue.change(s.at(), func(p *pending) { do(p, f) })
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store[O, F]) Replace(objects []any, _ string) error {
	all := make([]F, 0, len(objects))
	for i, obj := range objects {
		f, err := s.facts(obj)
		if err != nil {
			return err
		}
		all = append(all, f)
		objects[i] = nil // so that the collector can free the object during the conversion
	}
	s.queue.change(s.at(), func(p *pending) {
		s.all(p)
		for _, f := range all {
			s.set(p, f)
		}
	})
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store[O, F]) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater. The reflector calls it for every
// event and, about once a minute, for a bookmark: a sign that nothing was missed.
func (s *store[O, F]) UpdateResourceVersion(string) { s.queue.change(s.at(), nil) }
