package fetch

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// TestWaitingMemory checks that a request that waits for its answer has no buffer.
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
	for range requests { // each request keeps one connection
		tr := newTransport(t, Options{TLS: &tls.Config{InsecureSkipVerify: true}})
		go func() { <-asked; answer <- struct{}{} }()
		wantHello(t, tr, srv.URL)
		tr.buffers = sync.Pool{New: func() any { lent.Add(1); return newAnswerBuffer() }}
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
