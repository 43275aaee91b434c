package shared

import (
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// letter is a batch and when it arrived.
type letter struct {
	batch   *metric.Batch
	arrived time.Time
}

// mailbox has the newest batch of each source that arrived and was not used yet.
type mailbox struct {
	mu    sync.Mutex
	boxes map[metric.SourceKey]chan letter // each has room for one batch
	free  sync.Pool
}

func newMailbox() *mailbox {
	return &mailbox{boxes: map[metric.SourceKey]chan letter{}, free: sync.Pool{New: func() any { return new(metric.Batch) }}}
}

// box returns the channel on which the batches of a source arrive.
func (m *mailbox) box(k metric.SourceKey) <-chan letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open(k)
}

// open returns the channel of a source. The caller has locked m.mu.
func (m *mailbox) open(k metric.SourceKey) chan letter {
	if m.boxes[k] == nil {
		m.boxes[k] = make(chan letter, 1)
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
	m.recycle(poll(box).batch)
	box <- letter{c, time.Now()}
}

// poll takes the letter out of a channel. Its batch is nil if there is none.
func poll(box <-chan letter) letter {
	select {
	case b := <-box:
		return b
	default:
		return letter{}
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
