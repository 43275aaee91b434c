package push

import (
	"testing"
	"time"
)

func TestQueueDropsTheOldest(t *testing.T) {
	q := newQueue(100)
	noise := func(seed byte) []byte {
		b := make([]byte, 40)
		for i := range b {
			b[i] = seed * byte(i*i+int(seed))
		}
		return b
	}
	dropped := 0
	for i := range 5 {
		dropped += q.put(noise(byte(i+1)), 10+i, time.Unix(int64(i), 0))
	}
	bytes, items, since := q.state()
	if dropped != 10+11+12 || items != 13+14 || bytes > 100 || since.Unix() != 3 {
		t.Errorf("dropped %d, %d items of %d bytes wait since %v; want 33 dropped and the last two there", dropped, items, bytes, since)
	}
	p, ok := q.first()
	if !ok || p.items != 13 {
		t.Errorf("the first is %+v, %v", p, ok)
	}
}

// The oldest request is not dropped while it is being sent.
func TestQueueKeepsWhatIsSent(t *testing.T) {
	q := newQueue(10)
	q.put([]byte("first"), 1, time.Time{})
	if p, ok := q.first(); !ok || p.items != 1 {
		t.Fatalf("got %+v, %v", p, ok)
	}
	dropped := 0
	for i := range 5 {
		dropped += q.put([]byte("more!"), 10+i, time.Time{})
	}
	if dropped != 10+11+12+13 {
		t.Errorf("dropped %d items, want 46", dropped)
	}
	q.done()
	if p, ok := q.first(); !ok || p.items != 14 {
		t.Errorf("then came %+v, %v; want the newest", p, ok)
	}
}
