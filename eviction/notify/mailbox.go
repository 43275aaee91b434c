package notify

import (
	"slices"
	"sync"
	"time"
)

// mailbox keeps what came until it is fetched.
type mailbox struct {
	// full has something in it while there is something to fetch.
	full chan struct{}
	mu   struct {
		sync.Mutex
		Notice
	}
}

func newMailbox() *mailbox { return &mailbox{full: make(chan struct{}, 1)} }

// put adds a source that came at that time.
func (m *mailbox) put(at time.Time, s Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mu.Sources) == 0 {
		m.mu.At = at
		m.full <- struct{}{} // never blocks: fetch empties both
	}
	i := slices.IndexFunc(m.mu.Sources, func(o Source) bool { return o.Watch.key() == s.Watch.key() })
	if i < 0 {
		m.mu.Sources = append(m.mu.Sources, s)
		return
	}
	m.mu.Sources[i] = m.mu.Sources[i].then(s)
}

// fetch empties the box.
func (m *mailbox) fetch() Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.full:
	default:
	}
	n := m.mu.Notice
	m.mu.Notice = Notice{}
	return n
}

// then is a source and a later one of the same watch, as one.
func (s Source) then(later Source) Source {
	later.Gone = later.Gone || s.Gone
	later.Stalled += s.Stalled
	if later.Crossing == nil {
		later.Crossing = s.Crossing
	}
	for _, c := range s.Changes {
		if i := slices.IndexFunc(later.Changes, func(l Change) bool { return l.Counter == c.Counter }); i >= 0 {
			later.Changes[i].From = c.From
		} else {
			later.Changes = append(later.Changes, c)
		}
	}
	return later
}
