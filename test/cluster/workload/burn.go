package main

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// period is how long one turn of burning and resting takes. Ten
	// milliseconds are far below any metrics window, and below the CFS
	// bandwidth period, so that a CPU limit above the level never throttles.
	period = 10 * time.Millisecond
	// least is the smallest burn worth waking up for; a lower level has
	// longer periods instead.
	least = 200 * time.Microsecond
	// forget bounds the debt: what a busy machine kept from the process is made
	// up for as far as this much time's worth, the rest is forgotten. Else a
	// process that stood still for a minute would burn at full speed for one.
	forget = time.Second
)

// burner keeps the CPU use of this process at a level.
//
// Errors do not add up: a turn burns until the process's CPU clock shows what
// it should show at the turn's end, so what one turn used too much, the next
// uses less.
type burner struct {
	mu struct {
		sync.Mutex
		level   level
		at      time.Time     // since when the level holds
		cpu     time.Duration // what the CPU clock showed then
		changed chan struct{} // closed when the level changes
		started int           // workers that run
	}
	wake chan struct{} // tells run that more workers may be needed
}

func newBurner(l level) *burner {
	b := &burner{wake: make(chan struct{}, 1)}
	b.mu.changed = make(chan struct{})
	b.set(l)
	return b
}

// set changes the level from now on.
func (b *burner) set(l level) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.level, b.mu.at, b.mu.cpu = l, time.Now(), cpuTime()
	close(b.mu.changed)
	b.mu.changed = make(chan struct{})
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// get returns the level.
func (b *burner) get() level {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.level
}

// run burns until ctx ends, with one thread for each core of the highest
// level that was asked for.
func (b *burner) run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		b.mu.Lock()
		need, have := threads(b.mu.level), b.mu.started
		b.mu.started = max(need, have)
		b.mu.Unlock()
		if need+1 > runtime.GOMAXPROCS(0) { // it follows the container's CPU limit
			runtime.GOMAXPROCS(need + 1)
		}
		for i := have; i < need; i++ {
			workers.Go(func() { b.work(ctx, i) })
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
	}
}

// threads is how many are needed to reach the level.
func threads(l level) int { return int((l + 999) / 1000) }

// work is one thread's turns; number i rests while the level does without it.
func (b *burner) work(ctx context.Context, i int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		t := b.turn(time.Now(), cpuTime())
		if i >= threads(t.level) {
			select {
			case <-t.changed:
			case <-ctx.Done():
			}
			continue
		}
		for cpuTime() < t.goal && time.Now().Before(t.end) {
			spin()
		}
		timer.Reset(time.Until(t.end))
		select {
		case <-timer.C:
		case <-t.changed:
		case <-ctx.Done():
		}
	}
}

// turn is one period of a worker.
type turn struct {
	level   level
	end     time.Time
	goal    time.Duration // what the process's CPU clock shall show at the end
	changed <-chan struct{}
}

// turn plans the period that begins now, when the CPU clock shows cpu.
func (b *burner) turn(now time.Time, cpu time.Duration) turn {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.mu.level
	length := period
	if l > 0 {
		length = max(length, least*1000/time.Duration(l))
	}
	if behind := b.mu.cpu + share(l, now.Sub(b.mu.at)) - cpu; behind > share(l, forget) {
		b.mu.cpu -= behind - share(l, forget)
	}
	end := now.Add(length)
	return turn{level: l, end: end, goal: b.mu.cpu + share(l, end.Sub(b.mu.at)), changed: b.mu.changed}
}

// share is the CPU time that a level takes in d of time.
func share(l level, d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(l) / 1000)
}

// spin burns a few microseconds.
func spin() {
	x := uint64(1)
	for range 4000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	runtime.KeepAlive(x)
}

// cpuTime is what all threads of this process have used so far, user and
// system, to the microsecond.
func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err) // only a bad address makes it fail
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
