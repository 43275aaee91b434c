package manager

import (
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
)

// reconcile asks the providers, and starts and stops sources by their answers. Only Run's
// goroutine calls it.
func (m *Manager) reconcile() {
	facts := m.options.Facts()
	if news := m.ask(facts); news || !m.settled {
		m.follow()
	}
	if m.known(facts) {
		m.complete.CompareAndSwap(nil, new(time.Now()))
	}
}

// follow starts the sources that the providers named, and stops all others.
func (m *Manager) follow() {
	order, wanted := m.named()

	var gone []*runner
	m.mu.Lock()
	for name, r := range m.mu.sources {
		if spec, ok := wanted[name]; !ok || !same(spec, r.spec) || r.ending() {
			gone = append(gone, r)
		}
	}
	// A source that was stopped stays in the map until it has ended. Another source of its name
	// begins only then, so that the sinks forget the old one first. The end wakes the loop.
	appeared := order[:0]
	for _, spec := range order {
		if m.mu.sources[spec.Name] == nil {
			appeared = append(appeared, spec)
		}
	}
	for _, spec := range appeared {
		m.mu.sources[spec.Name] = m.start(spec, len(appeared))
	}
	total := len(m.mu.sources)
	m.mu.Unlock()
	m.settled = len(gone) == 0

	stopped := 0
	for _, r := range gone {
		if r.stop() {
			stopped++
		}
	}
	if len(appeared) > 0 || stopped > 0 {
		m.options.Logger.Info("the sources have changed",
			zap.Int("appeared", len(appeared)), zap.Int("vanished", stopped), zap.Int("now", total-stopped))
	}
}

// ask asks all providers, and reports whether an answer has changed.
func (m *Manager) ask(facts *cluster.Facts) (news bool) {
	for i := range m.answers {
		a := &m.answers[i]
		before := a.specs
		m.askProvider(a, facts)
		now := a.specs
		news = news || len(now) != len(before) || len(now) > 0 && &now[0] != &before[0]
	}
	return news
}

// named returns the specs of all providers, in their order and by name.
func (m *Manager) named() ([]Spec, map[string]Spec) {
	var order []Spec
	wanted := map[string]Spec{}
	twice := map[string]bool{}
	for i := range m.answers {
		for _, spec := range m.answers[i].specs {
			spec = spec.withDefaults()
			if _, taken := wanted[spec.Name]; taken {
				if !m.twice[spec.Name] {
					m.options.Logger.Error("two sources have one name; the second is not read", zap.String("source", spec.Name))
				}
				twice[spec.Name] = true
				continue
			}
			wanted[spec.Name] = spec
			order = append(order, spec)
		}
	}
	m.twice = twice
	return order, wanted
}

// answer is the last answer of a provider.
type answer struct {
	Provider
	specs    []Spec
	panicked bool
}

// askProvider asks a provider. If it panics, its sources do not change.
func (m *Manager) askProvider(a *answer, facts *cluster.Facts) {
	err := guard(func() error {
		a.specs = a.Sources(facts)
		return nil
	})
	if err != nil {
		m.telemetry.panics.WithLabelValues(stageProvider).Inc()
		if !a.panicked {
			m.options.Logger.Error("a provider panicked; its sources stay as they are", failure(err)...)
		}
	}
	a.panicked = err != nil
}

// same reports whether a running source of spec a can be used for b. Open cannot be compared.
func same(a, b Spec) bool {
	return a.Kind == b.Kind && a.Node == b.Node && a.Interval == b.Interval && a.Timeout == b.Timeout &&
		(a.Unread == nil) == (b.Unread == nil)
}
