package manager

import (
	"sync"
	"time"
)

// SinkStatus is the state of one sink.
type SinkStatus struct {
	Name string
	// Succeeded is when the last write without an error was done; zero if none was.
	Succeeded time.Time
	// Err is what the last write ended with.
	Err error
	// Queued is how many batches wait for it, of at most Queue.
	Queued, Queue int
	// Dropped counts the batches that it never got.
	Dropped int64
}

// Sinks returns the state of each sink, in the order of Options.Sinks.
func (m *Manager) Sinks() []SinkStatus {
	all := make([]SinkStatus, len(m.writers))
	for i, o := range m.writers {
		all[i] = o.record.status()
		all[i].Name, all[i].Queue, all[i].Queued = o.Name, o.Queue, o.queue.length()
	}
	return all
}

// record is what is noted of a sink for Sinks.
type record struct {
	mu   sync.Mutex
	last SinkStatus
}

func (r *record) status() SinkStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// wrote notes how a write ended.
func (r *record) wrote(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.Err = err; err == nil {
		r.last.Succeeded = time.Now()
	}
}

// dropped notes a batch that the sink never got.
func (r *record) dropped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.Dropped++
}
