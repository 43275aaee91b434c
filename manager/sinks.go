package manager

import "time"

// SinkStatus is the state of one sink.
type SinkStatus struct {
	Name string
	// Succeeded is when the last write without an error ended; zero if there was none.
	Succeeded time.Time
	// Took is how long the last write took; 0 before the first one.
	Took time.Duration
	// Err is the error of the last write.
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
		o.mu.Lock()
		all[i] = o.mu.status
		o.mu.Unlock()
		all[i].Name, all[i].Queue, all[i].Queued = o.Name, o.Queue, o.queue.length()
	}
	return all
}
