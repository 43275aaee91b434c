package shared

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// key identifies a source, as in a batch.
type key struct {
	source string
	node   metric.NodeName
}

// mailbox holds the newest batch of each source that has arrived and was not taken.
// Replicas read a node at the same time, so nearly always a Read waits already.
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

// take returns the batch of a source if it has arrived; else the channel that will get it.
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

// leave stops waiting for a source. It returns a batch that has arrived meanwhile, or nil.
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

// drop removes the batch of a source.
func (m *mailbox) drop(k key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.boxes[k]; b != nil {
		delete(m.boxes, k)
		m.recycle(b)
	}
}

// recycle keeps the memory of b, which must not be used any more.
func (m *mailbox) recycle(b *metric.Batch) {
	b.Reset()
	m.free.Put(b)
}
