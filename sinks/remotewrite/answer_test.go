package remotewrite

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weir-metrics/weir/sinks/push"
	"github.com/weir-metrics/weir/test/background"
)

// logged returns the lines of a log as the program writes them.
func logged(t *testing.T, lines *observer.ObservedLogs) string {
	t.Helper()
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	var all strings.Builder
	for _, l := range lines.All() {
		text, err := encoder.EncodeEntry(l.Entry, l.Context)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(text.String())
	}
	return all.String()
}

// firstLine returns a logger that writes to core, and a function that waits for its first line.
func firstLine(t *testing.T, core zapcore.Core) (logger *zap.Logger, wait func()) {
	t.Helper()
	logged := make(chan struct{})
	first := sync.OnceFunc(func() { close(logged) })
	return zap.New(core, zap.Hooks(func(zapcore.Entry) error { first(); return nil })), func() {
		t.Helper()
		select {
		case <-logged:
		case <-time.After(20 * time.Second):
			t.Error("nothing is logged in 20s")
		}
	}
}

// A receiver's answer of any size and content costs little memory and one short line of the log.
func TestAnswerIsBounded(t *testing.T) {
	var taken atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		noise := []byte(strings.Repeat("\x1b[2J\nforged line ", 4096))
		for range 1024 { // 64 MiB
			n, err := w.Write(noise)
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	core, lines := observer.New(zap.InfoLevel)
	s, finish := open(t, Options{Options: push.Options{URL: server.URL + "/write", Logger: zap.New(core)}})
	write(t, s, batch("n1", 1))
	finish()
	server.Close() // waits for the handler
	if got := taken.Load(); got > 32<<20 {
		t.Errorf("%d bytes of the answer were read", got)
	}
	text := logged(t, lines)
	if !strings.Contains(text, "forged line") || !strings.Contains(text, "403 Forbidden") || len(text) > 4096 || strings.ContainsRune(text, '\x1b') || strings.Count(text, "\n") != 1 {
		t.Errorf("the log has %d bytes: %.2000q", len(text), text)
	}
}

// The log never has the password or the query of the receiver's URL.
func TestURLIsLoggedWithoutSecrets(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if _, password, _ := r.BasicAuth(); password != "geheim" || r.FormValue("key") != "geheim" {
			t.Errorf("sent with password %q and key %q", password, r.FormValue("key"))
		}
		w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "2")
	}))
	with := strings.Replace(server.URL, "http://", "http://weir:geheim@", 1) + "/write?key=geheim"
	core, lines := observer.New(zap.InfoLevel)
	s, finish := open(t, Options{Options: push.Options{URL: with, Logger: zap.New(core)}})
	write(t, s, batch("n1", 1))
	finish()
	server.Close()
	logger, wait := firstLine(t, core)
	s, finish = open(t, Options{Options: push.Options{URL: with, Logger: logger, Flush: time.Millisecond, Grace: time.Millisecond}}) // nothing listens
	write(t, s, batch("n1", 1))
	wait()
	finish()
	text := logged(t, lines)
	for _, want := range []string{"the receiver does not accept samples now", "the receiver accepts samples again", "connection refused"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no line %q", want)
		}
	}
	if strings.Contains(text, "geheim") {
		t.Errorf("the log has a secret:\n%s", text)
	}
	for _, spec := range []string{
		"http://weir:geheim@host:port/w", "ftp://weir:geheim@host/w", "http://weir:geheim@host", "http://weir:geheim%zz@host/w", "http://weir:g/geheim@host/w",
		"http://host/w?header=geheim",
	} {
		o, err := parse(t, spec)
		if err == nil {
			_, err = New(o)
		}
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

// Credentials and headers reach the given receiver only. If it redirects, the samples wait.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was asked, with X-Api-Key %q", r.Method, r.URL, r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/login?token=geheim", http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	core, lines := observer.New(zap.InfoLevel)
	o, err := parse(t, server.URL+"/write?header=X-Api-Key=key")
	if err != nil {
		t.Fatal(err)
	}
	logger, wait := firstLine(t, core)
	o.Logger, o.Flush, o.Grace = logger, time.Millisecond, time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	finish := background.Run(t, s.Run)
	write(t, s, batch("n1", 1))
	wait()
	finish()
	text := logged(t, lines)
	if !strings.Contains(text, "redirects to "+other.URL+"/login") || strings.Contains(text, "geheim") || strings.Contains(text, "rejects") {
		t.Errorf("the log says:\n%s", text)
	}
}
