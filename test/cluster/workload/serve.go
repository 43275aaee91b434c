package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
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
		value    float64 // the gauge
		received int64   // bytes sent to /sink
		revert   *time.Timer
	}
}

func (c command) serve() func(context.Context) error {
	l := c.load()
	listen := c.flags.String("listen", ":8080", "address to serve HTTP on")
	return func(ctx context.Context) error {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		fmt.Fprintf(c.stdout, "workload serves on http://%s\n", listener.Addr())
		s := &server{burner: newBurner(l.millicores), base: l.millicores, exits: make(chan int, 1)}
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

// serveSet sets the gauge.
func (s *server) serveSet(w http.ResponseWriter, r *http.Request) {
	v, err := strconv.ParseFloat(r.FormValue("value"), 64)
	if err != nil {
		http.Error(w, "value: want a number", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.mu.value = v
	s.mu.Unlock()
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

// serveMetrics writes the gauge, and the true usage of the process, in the
// Prometheus text format.
func (s *server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	value, received := s.mu.value, s.mu.received
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"workload_value", "gauge", "What /set was last given.", value},
		{"workload_cpu_seconds_total", "counter", "CPU time this process has used.", cpuTime().Seconds()},
		{"workload_cpu_level_cores", "gauge", "CPU this process is to use.", float64(s.burner.get()) / 1000},
		{"workload_held_bytes", "gauge", "Memory held on purpose.", float64(s.memory.size())},
		{"workload_received_bytes_total", "counter", "Bytes sent to /sink.", float64(received)},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %s\n", m.name, m.help, m.name, m.kind,
			m.name, strconv.FormatFloat(m.value, 'g', -1, 64))
	}
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
