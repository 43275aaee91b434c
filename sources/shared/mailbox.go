package shared

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// key names a source as batches do.
type key struct {
	source string
	node   metric.NodeName
}

// mailbox holds the newest batch of each source that has come and was not asked for.
// Replicas read a node at the same moment, so nearly always somebody waits.
type mailbox struct {
	mu      sync.Mutex
	boxes   map[key]*metric.Batch
	waiting map[key]chan *metric.Batch
	free    sync.Pool
}

func newMailbox() *mailbox {
	return &mailbox{
		boxes: map[key]*metric.Batch{}, waiting: map[key]chan *metric.Batch{},
		free: sync.Pool{New: func() any { return new(metric.Batch) }},
	}
}

// put takes a copy of b.
func (m *mailbox) put(b *metric.Batch) {
	c := m.free.Get().(*metric.Batch)
	c.CopyFrom(b)
	k := key{b.Source, b.Node}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.waiting[k]; w != nil {
		delete(m.waiting, k)
		w <- c
		return
	}
	if old := m.boxes[k]; old != nil {
		m.recycle(old)
	}
	m.boxes[k] = c
}

// take returns the batch of a source that is there; else where it will come.
func (m *mailbox) take(k key) (*metric.Batch, chan *metric.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boxes[k]; b != nil {
		delete(m.boxes, k)
		return b, nil
	}
	w := make(chan *metric.Batch, 1)
	m.waiting[k] = w
	return nil, w
}

// leave ends the waiting for a source. It returns what has come meanwhile.
func (m *mailbox) leave(k key, w chan *metric.Batch) *metric.Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[k] == w {
		delete(m.waiting, k)
		return nil
	}
	select {
	case b := <-w:
		return b
	default:
		return nil
	}
}

// drop forgets what nobody will ask for.
func (m *mailbox) drop(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boxes[k]; b != nil {
		delete(m.boxes, k)
		m.recycle(b)
	}
}

// recycle takes b back, which nobody may use any more.
func (m *mailbox) recycle(b *metric.Batch) {
	b.Reset()
	m.free.Put(b)
}
