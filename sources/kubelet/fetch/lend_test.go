package fetch

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// An idle connection keeps no buffer, whatever was read over it; and what is lent
// for the next answer is lent whole.
func TestIdleMemory(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789abcdef"), 1<<14) // of records as large as they get
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(payload)
	}))
	defer srv.Close()
	tr := newTransport(t, Options{TLS: &tls.Config{InsecureSkipVerify: true}})
	var kept *conn
	for range 3 {
		got, err := get(t.Context(), tr, srv.URL)
		if err != nil || got.Body != string(payload) {
			t.Fatalf("got %d bytes and error %v, want the payload's %d", len(got.Body), err, len(payload))
		}
		for _, c := range tr.mu.idle {
			if kept != nil && c != kept {
				t.Error("the connection was not kept")
			}
			kept = c
		}
		if kept == nil || kept.in.raw == nil {
			t.Fatal("a tls.Conn does not look as it did: see incoming")
		}
		if got := kept.in.raw.Cap(); got != 0 || kept.in.plain.Size() != 0 {
			t.Errorf("got a buffer of %d bytes on an idle connection, want none", got)
		}
		secured := kept.Conn.(*tls.Conn)
		if got := secured.ConnectionState(); got.PeerCertificates != nil || got.VerifiedChains != nil {
			t.Error("an idle connection keeps certificates")
		}
		if hand := field[bytes.Buffer](secured, "hand"); hand == nil || hand.Cap() != 0 {
			t.Error("an idle connection keeps its handshake")
		}
		if config := field[*tls.Config](secured, "config"); config == nil || *config != tr.opts.TLS {
			t.Error("an idle connection has a configuration of its own")
		}
	}
	s := &scratch{records: make([]byte, 0, recordsSize)}
	kept.in.lend(s)
	if s.records != nil {
		t.Error("memory that is lent is still there to be used")
	}
	kept.in.takeBack(s)
	if got := cap(s.records); got != recordsSize {
		t.Errorf("got %d bytes back, want %d", got, recordsSize)
	}
}

// A request that waits for its answer holds no buffer, nor does the connection it waits on.
func TestWaitingMemory(t *testing.T) {
	const requests = 4
	asked, answer := make(chan struct{}), make(chan struct{})
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		_, _ = w.Write([]byte("hello"))
	}))
	defer srv.Close()
	var transports []*Transport
	var lent atomic.Int32
	for range requests { // each of which keeps one connection
		tr := newTransport(t, Options{TLS: &tls.Config{InsecureSkipVerify: true}})
		go func() { <-asked; answer <- struct{}{} }()
		wantHello(t, tr, srv.URL)
		tr.scratch = sync.Pool{New: func() any { lent.Add(1); return newScratch() }}
		transports = append(transports, tr)
	}
	var wait sync.WaitGroup
	for _, tr := range transports {
		wait.Go(func() { wantHello(t, tr, srv.URL) })
	}
	for range requests {
		<-asked
	}
	if got := lent.Load(); got != 0 {
		t.Errorf("%d of %d requests hold a buffer while they wait, want none", got, requests)
	}
	close(answer)
	wait.Wait()
	if got := lent.Load(); got != requests {
		t.Errorf("%d of %d requests took a buffer for their answer", got, requests)
	}
}
