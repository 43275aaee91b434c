package kubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// memoryBudget is the memory that large buffers may take together. When it is used up, each node has the same
// share: a read that needs less than the largest buffer has ends the read of that one. So nodes whose
// answers are huge, or never end, cannot take what the others need.
type memoryBudget struct {
	mu      sync.Mutex
	freed   *sync.Cond
	left    int64
	holders map[*buffer]bool // of memory; true if it waits for more
	waiting int              // how many of them wait
}

// errOutgrown is the cause of the end of a read with the largest buffer.
var errOutgrown = errors.New("other nodes need the memory")

// errStuck is the error of a read that needs more memory, if all others that have some wait for more.
var errStuck = errors.New("too many large payloads are read at once")

func newBudget(bytes int64) *memoryBudget {
	m := &memoryBudget{left: bytes, holders: map[*buffer]bool{}}
	m.freed = sync.NewCond(&m.mu)
	return m
}

// take waits until need bytes are free, and takes them for b, in addition to what b has.
func (m *memoryBudget) take(ctx context.Context, b *buffer, need int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if need > m.left { // Slow path
		defer context.AfterFunc(ctx, m.wake)()
	}
	for need > m.left {
		largest := b
		for other := range m.holders {
			if other.large > largest.large {
				largest = other
			}
		}
		_, holds := m.holders[b]
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case largest.large > need:
			largest.end(fmt.Errorf("%w, and its buffer of %d bytes is the largest", errOutgrown, largest.large))
		case holds && m.waiting == len(m.holders)-1:
			return errStuck
		}
		if holds {
			m.holders[b], m.waiting = true, m.waiting+1
		}
		m.freed.Wait()
		if holds {
			m.holders[b], m.waiting = false, m.waiting-1
		}
	}
	m.left -= need
	return nil
}

// grown records that b has need bytes, which it took, and gives back what it had before.
func (m *memoryBudget) grown(b *buffer, need int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left += b.large
	b.large, m.holders[b] = need, false
	m.freed.Broadcast()
}

// giveBack gives back what b has.
func (m *memoryBudget) giveBack(b *buffer) {
	if b.large == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left += b.large
	b.large = 0
	delete(m.holders, b)
	m.freed.Broadcast()
}

// wake has all reads that wait look again.
func (m *memoryBudget) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freed.Broadcast()
}
