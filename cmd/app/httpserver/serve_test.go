package httpserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/server"
	"github.com/weir-metrics/weir/cmd/client/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestListenRefusesPublicAddresses(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"} {
		ln, err := Listen(t.Context(), address, false)
		if err == nil {
			ln.Close()
		}
		var hint *cli.Hint
		if !errors.As(err, &hint) || !strings.Contains(hint.Try, "--allow-unauthenticated") {
			t.Errorf("Listen(%q) = %v, want a refusal that names --allow-unauthenticated", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.8.8.8:0"} {
		ln, err := Listen(t.Context(), address, false)
		if err != nil {
			t.Errorf("Listen(%q): %v", address, err)
			continue
		}
		ln.Close()
	}
	ln, err := Listen(t.Context(), "0.0.0.0:0", true)
	if err != nil {
		t.Fatalf("Listen(0.0.0.0:0) with leave: %v", err)
	}
	ln.Close()
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	_, err = Listen(t.Context(), address, false)
	var hint *cli.Hint
	if !errors.As(err, &hint) || err.Error() != "listen on "+address+": the address is in use" || !strings.Contains(hint.Try, "--listen") {
		t.Errorf("taken address: got %v", err)
	}
	if _, err = Listen(t.Context(), "8087", false); err == nil || err.Error() != `--listen "8087" is not HOST:PORT` {
		t.Errorf("port alone: got %v", err)
	}
}

// Serve lets a request under way end before it returns, and cuts off one that takes longer than
// grace.
func TestServeEndsInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		grace  time.Duration
		finish bool
	}{
		"a request that ends":  {time.Minute, true},
		"a request that hangs": {time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			entered, release := make(chan struct{}), make(chan struct{})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				close(entered)
				select {
				case <-release:
				case <-r.Context().Done():
				}
				io.WriteString(w, "done")
			})
			ln, err := Listen(t.Context(), "127.0.0.1:0", false)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			served, answered := make(chan error, 1), make(chan string, 1)
			go func() { served <- Serve(ctx, ln, h, test.grace, zap.NewNop()) }()
			go func() {
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				resp, err := client.Get("http://" + ln.Addr().String())
				if err != nil {
					answered <- "error"
					return
				}
				defer resp.Body.Close()
				b, _ := io.ReadAll(resp.Body)
				answered <- string(b)
			}()
			<-entered
			cancel()
			if test.finish {
				close(release)
			}
			if err := <-served; err != nil {
				t.Errorf("Serve: %v", err)
			}
			want := map[bool]string{true: "done", false: "error"}[test.finish]
			if got := <-answered; got != want {
				t.Errorf("the request got %q, want %q", got, want)
			}
		})
	}
}

func TestReadyzSaysWhatIsWaitedFor(t *testing.T) {
	waits := []string{"host was not read yet"}
	m := NewMux("weir")
	m.HandleHealth(server.HealthCheck{Name: "listening", WaitsFor: func() []string { return nil }}, server.HealthCheck{Name: "sources", WaitsFor: func() []string { return waits }})
	expect := func(path string, status int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status || w.Body.String() != body {
			t.Errorf("GET %s = %d\n%s\nwant %d\n%s", path, w.Code, w.Body, status, body)
		}
	}
	expect("/livez", 200, "ok\n")
	expect("/readyz", 503, "[+] listening\n[-] sources: host was not read yet\nnot ready\n")
	waits = nil
	expect("/readyz", 200, "[+] listening\n[+] sources\nready\n")
}

func TestIndexListsWhatIsServed(t *testing.T) {
	m := NewMux("weir <x>")
	m.HandleHealth()
	m.HandlePprof()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	for _, want := range []string{`href="/livez"`, `href="/debug/pprof/"`, "weir &lt;x&gt;"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the index lacks %s:\n%s", want, w.Body)
		}
	}
	w = httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/nowhere", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("GET /nowhere = %d, want 404", w.Code)
	}
}

func TestLocalHosts(t *testing.T) {
	h := LocalHosts(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "numbers") }))
	for host, want := range map[string]int{
		"127.0.0.1:8087": 200, "localhost:8087": 200, "localhost": 200, "[::1]:8087": 200, "127.8.8.8": 200, "": 200,
		"evil.example:8087": 421, "localhost.evil.example": 421, "192.0.2.1:8087": 421, "127.0.0.1.evil.example:8087": 421, "[::1": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want || (w.Body.String() == "numbers") != (want == 200) {
			t.Errorf("Host %q: got status %d and %q, want %d", host, w.Code, w.Body, want)
		}
	}
}
