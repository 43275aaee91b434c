package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// resident returns the memory of this process that is in RAM.
func resident(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("no /proc to look at: %v", err)
	}
	var total, pages int64
	if _, err := fmt.Sscan(string(data), &total, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// serving starts a server that burns no CPU and returns its URL.
func serving(t *testing.T, numbers ...*number) (*server, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{burner: newBurner(0)}
	s.mu.numbers = append(defaultNumbers(), numbers...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s, "http://" + listener.Addr().String()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestSwitches(t *testing.T) {
	s, url := serving(t)
	f := func(path string, status int, want string) {
		t.Helper()
		if code, body := get(t, url+path); code != status || !strings.Contains(body, want) {
			t.Errorf("GET %s: %d %q, want %d with %q", path, code, body, status, want)
		}
	}
	f("/healthz", 200, "ok")
	f("/burn?millicores=5", 200, "5")
	if got := s.burner.get(); got != 5 {
		t.Errorf("level %d, want 5", got)
	}
	f("/burn?millicores=x", 400, "millicores: want")
	f("/burn?millicores=5&seconds=-1", 400, "seconds: want")
	f("/burn?millicores=5&seconds=NaN", 400, "seconds: want")
	f("/hold?bytes=1Mi", 200, "1048576")
	f("/hold?bytes=x", 400, "bytes: want")
	f("/fill?dir="+t.TempDir()+"&bytes=4Ki&files=2", 200, "4096 2")
	f("/fill?bytes=4Ki", 507, "which folder")
	f("/fill?dir=/x&bytes=x", 400, "bytes: want")
	f("/fill?dir=/x&files=-1", 400, "files: want")
	f("/bytes?n=x", 400, "n: want")
	f("/set?value=2.5", 200, "2.5")
	f("/set?value=x", 400, "value: want")
	if _, body := get(t, url+"/bytes?n=100000"); len(body) != 100000 {
		t.Errorf("/bytes?n=100000 gave %d bytes", len(body))
	}
	r, err := http.Post(url+"/sink", "", strings.NewReader("12345"))
	if err != nil || r.StatusCode != http.StatusNoContent {
		t.Errorf("POST /sink: %v %v", r, err)
	}
	_, body := get(t, url+"/metrics")
	for _, want := range []string{
		"# TYPE workload_value gauge\nworkload_value 2.5\n",
		"workload_cpu_level_cores 0.005\n",
		"workload_held_bytes 1.048576e+06\n",
		"workload_received_bytes_total 5\n",
		"# TYPE workload_cpu_seconds_total counter\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %q:\n%s", want, body)
		}
	}
}

func TestBurnForSecondsReturnsToTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{burner: newBurner(7), base: 7}
		h := s.handler()
		f := func(path string) {
			r, err := http.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			h.ServeHTTP(discard{}, r)
		}
		want := func(l level) {
			t.Helper()
			synctest.Wait()
			if got := s.burner.get(); got != l {
				t.Errorf("level %d, want %d", got, l)
			}
		}
		f("/burn?millicores=500&seconds=10")
		time.Sleep(9 * time.Second)
		want(500)
		f("/burn?millicores=300&seconds=10") // replaces the first
		time.Sleep(9 * time.Second)
		want(300)
		time.Sleep(2 * time.Second)
		want(7)
		f("/burn?millicores=400&seconds=1")
		f("/burn?millicores=200") // without an end
		time.Sleep(time.Hour)
		want(200)
	})
}

// discard is a ResponseWriter for answers that no test reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func TestPacedGivesTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p := &paced{ctx: ctx, rate: 1_000_000, start: time.Now()}
		n, err := io.Copy(io.Discard, p)
		if err != nil || n < 9_900_000 || n > 10_000_000 {
			t.Errorf("10s gave %d bytes (%v), want 10,000,000 less at most two beats", n, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := &paced{ctx: t.Context(), rate: 1000, start: time.Now()}
		time.Sleep(time.Hour) // nobody read
		if n, _ := p.Read(make([]byte, 1<<20)); n != 1000 {
			t.Errorf("after an hour's pause %d bytes come at once, want one second's 1000", n)
		}
	})
}

func TestTrafficArrives(t *testing.T) {
	s, url := serving(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"traffic", "--to", url, "--bytes-per-second", "1Mi"}, io.Discard, io.Discard)
	}()
	received := func() int64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.mu.received
	}
	for deadline := time.Now().Add(10 * time.Second); received() < 100_000; {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes arrived in 10s, want 100,000 in a tenth of a second", received())
		}
		time.Sleep(5 * time.Millisecond) // a real connection: there is no event to wait for
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("traffic: %v", err)
	}
}

// TestNumbers sets a gauge and a counter, which grows by what it was given.
func TestNumbers(t *testing.T) {
	_, url := serving(t, &number{name: "queue", labels: `{queue="mail"}`, help: "A number of a test."})
	if code, body := get(t, url+"/set?name=queue&value=3"); code != 200 || body != "3\n" {
		t.Errorf("GET /set of a gauge: %d %q, want 200 with 3", code, body)
	}
	if code, body := get(t, url+"/set?name=other&value=3"); code != 400 || !strings.Contains(body, "there is no other") {
		t.Errorf("GET /set of another: %d %q, want 400", code, body)
	}
	if _, body := get(t, url+"/metrics"); !strings.Contains(body, "# TYPE queue gauge\nqueue{queue=\"mail\"} 3\n") {
		t.Errorf("the gauge is not in\n%s", body)
	}
	began := time.Unix(1000, 0)
	n := &number{growing: true, value: 5, total: 7, since: began}
	if got := n.at(began.Add(2 * time.Second)); got != 17 {
		t.Errorf("a counter at 7 that grows by 5 a second is %v after 2s, want 17", got)
	}
}
