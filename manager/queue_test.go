package manager

import (
	"fmt"
	"testing"

	"github.com/weir-metrics/weir/metric"
)

func TestQueue(t *testing.T) {
	q := newQueue(3)
	batches := make([]metric.Batch, 5)
	number := map[*metric.Batch]int{}
	for i := range batches {
		number[&batches[i]] = i
	}
	offer := func(i int, want bool) {
		t.Helper()
		if got, _ := q.offer(item{batch: &batches[i]}); got != want {
			t.Errorf("offer of batch %d: got %v, want %v", i, got, want)
		}
	}
	next := func(want string) {
		t.Helper()
		it, ok := q.next()
		got := "closed"
		if ok && it.batch != nil {
			got = fmt.Sprint(number[it.batch])
		} else if ok {
			got = "forget " + string(it.node)
		}
		if got != want {
			t.Errorf("next: got %s, want %s", got, want)
		}
	}

	offer(0, true)
	offer(1, true)
	next("0")
	offer(2, true)
	q.forget("s", "a")
	offer(3, true)
	offer(4, false) // the number of batches is limited
	for _, node := range []metric.NodeName{"b", "c", "d", "e", "f"} {
		q.forget("s", node) // the number of sources to forget is not
	}
	if got := q.length(); got != 3 {
		t.Errorf("length: got %d, want 3", got)
	}
	for _, want := range []string{"1", "2", "forget a", "3", "forget b", "forget c"} {
		next(want)
	}
	offer(4, true)
	q.close()
	offer(0, false)
	for _, want := range []string{"forget d", "forget e", "forget f", "4", "closed", "closed"} {
		next(want)
	}
}

// One of the goroutines that append items drains the queue until it is empty.
func TestQueueIsSeenToByOne(t *testing.T) {
	q := newQueue(3)
	b := &metric.Batch{}
	for i, want := range []bool{true, false} {
		if accepted, yours := q.offer(item{batch: b}); !accepted || yours != want {
			t.Errorf("offer %d: got room %v, yours %v; want true, %v", i, accepted, yours, want)
		}
	}
	q.next()
	if q.forget("s", "a") {
		t.Error("forget while somebody takes out: got yours, want not")
	}
	q.close()
	for range 2 {
		select {
		case <-q.ended:
			t.Error("ended: with items in it")
		default:
		}
		q.next()
	}
	q.next()
	select {
	case <-q.ended:
	default:
		t.Error("not ended: closed and empty")
	}
}
