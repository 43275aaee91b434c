package shared

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// mailbox holds the newest batch of each source that has arrived and was not taken.
type mailbox struct {
	mu    sync.Mutex
	boxes map[metric.SourceKey]chan *metric.Batch // of one
	free  sync.Pool
}

func newMailbox() *mailbox {
	return &mailbox{boxes: map[metric.SourceKey]chan *metric.Batch{}, free: sync.Pool{New: func() any { return new(metric.Batch) }}}
}

// box returns the channel that the batches of a source arrive in.
func (m *mailbox) box(k metric.SourceKey) <-chan *metric.Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open(k)
}

// open returns the box of a source. m.mu is held.
func (m *mailbox) open(k metric.SourceKey) chan *metric.Batch {
	if m.boxes[k] == nil {
		m.boxes[k] = make(chan *metric.Batch, 1)
	}
	return m.boxes[k]
}

// put puts a copy of b into its box, in place of an older batch.
func (m *mailbox) put(b *metric.Batch) {
	c := m.free.Get().(*metric.Batch)
	c.CopyFrom(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	box := m.open(b.Key())
	m.recycle(poll(box))
	box <- c
}

// poll takes the batch out of a box; nil if there is none.
func poll(box <-chan *metric.Batch) *metric.Batch {
	select {
	case b := <-box:
		return b
	default:
		return nil
	}
}

// recycle keeps the memory of b, which must not be used any more, unless b is nil.
func (m *mailbox) recycle(b *metric.Batch) {
	if b != nil {
		b.Reset()
		m.free.Put(b)
	}
}
