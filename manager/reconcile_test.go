package manager

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/test/background"
)

// If a provider returns the same slice again, nothing has changed. A source that must end
// before its successor begins is still handled.
func TestSameAnswerIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		first, second := hanging(let), healthy()
		before, after := []Spec{first.spec("n1", 10*time.Second, 5*time.Second)}, []Spec{second.spec("n1", 20*time.Second, 5*time.Second)}
		var changed atomic.Bool
		var asked atomic.Int32
		says := func(*cluster.Facts) []Spec {
			asked.Add(1)
			if changed.Load() {
				return after
			}
			return before
		}
		log := newDiary()
		m := New(Options{
			Providers: []Provider{asks(says)},
			Sinks:     []NamedSink{log.named()},
			Refresh:   time.Second,
		})
		stop := background.Run(t, m.Run)
		time.Sleep(1500 * time.Millisecond) // a read hangs
		changed.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := second.rounds.Load(); n != 0 {
			t.Errorf("the successor was read %d times beside the one before, want 0", n)
		}
		close(let)
		time.Sleep(7 * time.Second)
		synctest.Wait()
		wantLines(t, "sink", log.read(), "2.5s forget test n1", "2.5s n1 1")
		stop()
		if got := asked.Load(); got < 10 || !m.settled {
			t.Errorf("asked %d times, settled %v; want at least once a second, and true", got, m.settled)
		}
	})
}

// If a source is no longer wanted, and is wanted again before it has ended, it begins again
// after its end.
func TestWantedAgainBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		hangs := hanging(let)
		here, nowhere := []Spec{hangs.spec("n1", 10*time.Second, 5*time.Second)}, []Spec{}
		var says atomic.Pointer[[]Spec]
		says.Store(&here)
		log := newDiary()
		m := New(Options{
			Providers: []Provider{asks(func(*cluster.Facts) []Spec { return *says.Load() })},
			Sinks:     []NamedSink{log.named()},
			Refresh:   300 * time.Millisecond,
		})
		background.Run(t, m.Run)
		time.Sleep(time.Second) // a read hangs
		says.Store(&nowhere)
		time.Sleep(400 * time.Millisecond)
		says.Store(&here)
		time.Sleep(400 * time.Millisecond)
		close(let)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := hangs.rounds.Load(); n < 3 {
			t.Errorf("read %d times in a minute, want every ten seconds", n)
		}
	})
}
