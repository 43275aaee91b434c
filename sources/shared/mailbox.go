package shared

import (
	"maps"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
)

// letter is a batch and when it arrived.
type letter struct {
	batch   *metric.Batch
	arrived time.Time
}

// mailbox has, of each source that is read here, the newest batch that arrived and was not used yet.
type mailbox struct {
	mu    sync.Mutex
	boxes map[metric.SourceKey]chan letter // each has room for one batch
	free  sync.Pool
}

// box returns the channel on which the batches of a source arrive. From then on its batches are kept.
func (m *mailbox) box(k metric.SourceKey) <-chan letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes[k] == nil {
		m.boxes[k] = make(chan letter, 1)
	}
	return m.boxes[k]
}

// forget ends box for all sources of a node.
func (m *mailbox) forget(node metric.NodeName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.boxes, func(k metric.SourceKey, _ chan letter) bool { return k.Node == node })
}

// put puts a copy of b into its channel. It replaces an older batch. It drops a batch of a source that
// box was not called for, or another replica could fill the memory with made-up nodes.
func (m *mailbox) put(b *metric.Batch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	box := m.boxes[b.Key()]
	if box == nil {
		return
	}
	c := m.free.Get().(*metric.Batch)
	c.CopyFrom(b)
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
