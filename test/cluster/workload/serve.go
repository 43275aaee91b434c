package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// server is a workload that changes its usage on request.
type server struct {
	burner *burner
	memory memory
	filler filler
	base   level // the level after a /burn with seconds

	exits chan int // exit codes to end with

	mu struct {
		sync.Mutex
		numbers  []*number
		received int64 // bytes sent to /sink
		revert   *time.Timer
	}
}

func (c command) serve() func(context.Context) error {
	l := c.load()
	listen := c.flags.String("listen", ":8080", "address to serve HTTP on")
	numbers := defaultNumbers()
	add := func(growing bool) func(string) error {
		return func(series string) error {
			n := &number{growing: growing, help: "A number of a test."}
			if n.name, n.labels, _ = strings.Cut(series, "{"); n.labels != "" {
				n.labels = "{" + n.labels
			}
			numbers = append(numbers, n)
			return nil
		}
	}
	c.flags.Func("gauge", "metric, with its labels, that has what /set?name=METRIC&value= was given; repeatable", add(false))
	c.flags.Func("counter", "the same, a counter that grows by that much each second; repeatable", add(true))
	return func(ctx context.Context) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		fmt.Fprintf(c.stdout, "workload serves on http://%s\n", listener.Addr())
		s := &server{burner: newBurner(l.millicores), base: l.millicores, exits: make(chan int, 1)}
		s.mu.numbers = numbers
		defer s.memory.release()
		if err := s.memory.hold(l.bytes, 0); err != nil {
			listener.Close()
			return err
		}
		return s.run(ctx, listener)
	}
}

// run serves and burns until ctx ends.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	web := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { s.burner.run(ctx) })
	code := 0
	background.Go(func() {
		select {
		case <-ctx.Done():
		case code = <-s.exits:
		}
		grace, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		if web.Shutdown(grace) != nil {
			_ = web.Close() // requests that last longer than the grace are cut off
		}
	})
	defer s.stopRevert()
	err := web.Serve(listener)
	cancel()
	background.Wait()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

// handler returns the handler of all requests that change the workload. GET is
// enough for all of them, so that a pod proxy or wget can send them.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /burn", s.serveBurn)
	mux.HandleFunc("GET /hold", s.serveHold)
	mux.HandleFunc("GET /fill", s.serveFill)
	mux.HandleFunc("GET /bytes", serveBytes)
	mux.HandleFunc("POST /sink", s.serveSink)
	mux.HandleFunc("GET /set", s.serveSet)
	mux.HandleFunc("GET /metrics", s.serveMetrics)
	mux.HandleFunc("GET /exit", s.serveExit)
	return mux
}

// serveBurn sets the level. With seconds, the level returns to its initial
// value after that time.
func (s *server) serveBurn(w http.ResponseWriter, r *http.Request) {
	var l level
	if err := l.Set(r.FormValue("millicores")); err != nil {
		http.Error(w, "millicores: "+err.Error(), http.StatusBadRequest)
		return
	}
	var d time.Duration
	if v := r.FormValue("seconds"); v != "" {
		seconds, err := strconv.ParseFloat(v, 64)
		if err != nil || !(seconds > 0 && seconds < 1e6) {
			http.Error(w, "seconds: want a number above 0", http.StatusBadRequest)
			return
		}
		d = time.Duration(seconds * float64(time.Second))
	}
	s.stopRevert()
	s.burner.set(l)
	if d > 0 {
		s.mu.Lock()
		s.mu.revert = time.AfterFunc(d, func() { s.burner.set(s.base) })
		s.mu.Unlock()
	}
	fmt.Fprintf(w, "%d\n", l)
}

func (s *server) stopRevert() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.revert != nil {
		s.mu.revert.Stop()
		s.mu.revert = nil
	}
}

// serveHold changes how much memory is allocated, at a rate in bytes a second if
// it is given one.
func (s *server) serveHold(w http.ResponseWriter, r *http.Request) {
	var n, rate size
	if err := n.Set(r.FormValue("bytes")); err != nil {
		http.Error(w, "bytes: "+err.Error(), http.StatusBadRequest)
		return
	}
	if v := r.FormValue("rate"); v != "" {
		if err := rate.Set(v); err != nil {
			http.Error(w, "rate: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	if err := s.memory.hold(n, rate); err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	}
	fmt.Fprintf(w, "%d\n", n)
}

// serveFill fills a folder with bytes, files or both.
func (s *server) serveFill(w http.ResponseWriter, r *http.Request) {
	var bytes size
	if v := r.FormValue("bytes"); v != "" {
		if err := bytes.Set(v); err != nil {
			http.Error(w, "bytes: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	files := 0
	if v := r.FormValue("files"); v != "" {
		n, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			http.Error(w, "files: want a number", http.StatusBadRequest)
			return
		}
		files = int(n)
	}
	if err := s.filler.fill(r.FormValue("dir"), bytes, files); err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	}
	fmt.Fprintf(w, "%d %d\n", bytes, files)
}

// serveBytes streams n bytes.
func serveBytes(w http.ResponseWriter, r *http.Request) {
	var n size
	if err := n.Set(r.FormValue("n")); err != nil {
		http.Error(w, "n: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", n.String())
	_, _ = io.Copy(w, io.LimitReader(zeros{}, int64(n))) // an error means that the client has gone
}

// serveSink reads a body and discards it.
func (s *server) serveSink(w http.ResponseWriter, r *http.Request) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buffer)
		s.mu.Lock()
		s.mu.received += int64(n)
		s.mu.Unlock()
		if err != nil {
			break // the end of the body, or a client that has gone
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// defaultNumber is what /set changes without a name.
const defaultNumber = "workload_value"

// defaultNumbers returns the numbers of a server without flags.
func defaultNumbers() []*number {
	return []*number{{name: defaultNumber, help: "What /set was last given."}}
}

// number is a metric that /set changes.
type number struct {
	name, labels, help string
	growing            bool // a counter that grows by value each second

	value float64
	total float64   // of a counter, at since
	since time.Time // when value was set
}

// at returns the number that the metric has at a time.
func (n *number) at(now time.Time) float64 {
	if !n.growing {
		return n.value
	}
	return n.total + n.value*now.Sub(n.since).Seconds()
}

// serveSet sets a number.
func (s *server) serveSet(w http.ResponseWriter, r *http.Request) {
	v, err := strconv.ParseFloat(r.FormValue("value"), 64)
	if err != nil {
		http.Error(w, "value: want a number", http.StatusBadRequest)
		return
	}
	name := cmp.Or(r.FormValue("name"), defaultNumber)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.mu.numbers, func(n *number) bool { return n.name == name })
	if i < 0 {
		http.Error(w, "name: there is no "+name, http.StatusBadRequest)
		return
	}
	n, now := s.mu.numbers[i], time.Now()
	n.value, n.total, n.since = v, n.at(now), now
	fmt.Fprintf(w, "%v\n", v)
}

// serveExit ends the process after it has answered.
func (s *server) serveExit(w http.ResponseWriter, r *http.Request) {
	code, err := strconv.ParseUint(r.FormValue("code"), 10, 8)
	if err != nil {
		http.Error(w, "code: want 0 to 255", http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, code)
	select {
	case s.exits <- int(code):
	default: // it is already ending
	}
}

// serveMetrics writes the numbers, and the true usage of the process, in the
// Prometheus text format.
func (s *server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	type sample struct {
		name, labels, kind, help string
		value                    float64
	}
	var all []sample
	s.mu.Lock()
	received := s.mu.received
	for _, n := range s.mu.numbers {
		kind := map[bool]string{false: "gauge", true: "counter"}[n.growing]
		all = append(all, sample{n.name, n.labels, kind, n.help, n.at(time.Now())})
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range append(all,
		sample{"workload_cpu_seconds_total", "", "counter", "CPU time this process has used.", cpuTime().Seconds()},
		sample{"workload_cpu_level_cores", "", "gauge", "CPU this process is to use.", float64(s.burner.get()) / 1000},
		sample{"workload_held_bytes", "", "gauge", "Memory held on purpose.", float64(s.memory.size())},
		sample{"workload_received_bytes_total", "", "counter", "Bytes sent to /sink.", float64(received)},
	) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s%s %s\n", m.name, m.help, m.name, m.kind,
			m.name, m.labels, strconv.FormatFloat(m.value, 'g', -1, 64))
	}
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
