package shared

import (
	"sync"

	"github.com/weir-metrics/weir/metric"
)

// mailbox has the newest batch of each source that arrived and was not used yet.
type mailbox struct {
	mu    sync.Mutex
	boxes map[metric.SourceKey]chan *metric.Batch // each has room for one batch
	free  sync.Pool
}

func newMailbox() *mailbox {
	return &mailbox{boxes: map[metric.SourceKey]chan *metric.Batch{}, free: sync.Pool{New: func() any { return new(metric.Batch) }}}
}

// box returns the channel on which the batches of a source arrive.
func (m *mailbox) box(k metric.SourceKey) <-chan *metric.Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open(k)
}

// open returns the channel of a source. The caller has locked m.mu.
func (m *mailbox) open(k metric.SourceKey) chan *metric.Batch {
	if m.boxes[k] == nil {
		m.boxes[k] = make(chan *metric.Batch, 1)
	}
	return m.boxes[k]
}

// put puts a copy of b into its channel. It replaces an older batch.
func (m *mailbox) put(b *metric.Batch) {
	c := m.free.Get().(*metric.Batch)
	c.CopyFrom(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	box := m.open(b.Key())
	m.recycle(poll(box))
	box <- c
}

// poll takes the batch out of a channel; nil if there is none.
func poll(box <-chan *metric.Batch) *metric.Batch {
	select {
	case b := <-box:
		return b
	default:
		return nil
	}
}

// recycle keeps the memory of b for another batch. b may be nil. The caller must not use b any
// more.
func (m *mailbox) recycle(b *metric.Batch) {
	if b != nil {
		b.Reset()
		m.free.Put(b)
	}
}
