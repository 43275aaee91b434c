package main

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// period is how long one turn takes, in which a worker burns CPU and rests. Ten
	// milliseconds are far below any metrics window, and below the CFS bandwidth
	// period, so a CPU limit above the level never throttles.
	period = 10 * time.Millisecond
	// least is the shortest burn for which a worker wakes up. Lower levels have
	// longer periods instead.
	least = 200 * time.Microsecond
	// forget bounds the debt. If a busy machine gives the process too little CPU,
	// it later burns more, but only for this much time; the rest is forgotten.
	// Otherwise a process that was stopped for a minute would burn at full speed
	// for a minute.
	forget = time.Second
)

// burner keeps the CPU usage of this process at a level.
//
// Errors do not add up: a turn burns until the process's CPU clock shows what
// it should show at the end of the turn. If one turn used too much, the next
// uses less.
type burner struct {
	mu struct {
		sync.Mutex
		level   level
		at      time.Time     // when the level was set
		cpu     time.Duration // the CPU clock at that time
		changed chan struct{} // closed when the level changes
		started int           // workers that were started
	}
	wake chan struct{} // wakes run when more workers may be needed
}

func newBurner(l level) *burner {
	b := &burner{wake: make(chan struct{}, 1)}
	b.mu.changed = make(chan struct{})
	b.set(l)
	return b
}

// set changes the level.
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

// run burns until ctx ends, with one thread for each core of the highest level
// that was set.
func (b *burner) run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		b.mu.Lock()
		need, have := threads(b.mu.level), b.mu.started
		b.mu.started = max(need, have)
		b.mu.Unlock()
		if need+1 > runtime.GOMAXPROCS(0) { // GOMAXPROCS follows the container's CPU limit
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

// threads returns how many threads the level needs.
func threads(l level) int { return int((l + 999) / 1000) }

// work runs the turns of one thread. Thread number i rests while the level does
// not need it.
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
	goal    time.Duration // what the process's CPU clock should show at the end
	changed <-chan struct{}
}

// turn plans the period that begins now. cpu is what the CPU clock shows.
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

// share returns the CPU time of a level in d.
func share(l level, d time.Duration) time.Duration {
	return time.Duration(float64(d) * float64(l) / 1000)
}

// spin burns CPU for a few microseconds.
func spin() {
	x := uint64(1)
	for range 4000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	runtime.KeepAlive(x)
}

// cpuTime returns the CPU time that all threads of this process have used so
// far, user and system, in steps of a microsecond.
func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err) // only an invalid address makes it fail
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
