package tlsmemory

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
)

func TestThisGoVersionIsTested(t *testing.T) {
	if !isTested(runtime.Version()) {
		t.Errorf("%s is not in testedVersions: run these tests with it added, then BenchmarkCost of sources/kubelet", runtime.Version())
	}
	for version, want := range map[string]bool{"go1.26": true, "go1.26.3": true, "go1.260": false, "go1.99.1": false, "devel go1.27-abc": false} {
		if got := isTested(version); got != want {
			t.Errorf("isTested(%q) = %v, want %v", version, got, want)
		}
	}
}

// TestAConnectionKeepsNothing checks that a connection keeps no memory of its handshake and of what
// it read, and that it still works afterwards.
func TestAConnectionKeepsNothing(t *testing.T) {
	if !Enabled() {
		t.Skip("switched off by the build tag weir_plain_tls")
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<14)) // records of the largest size
	}))
	defer server.Close()
	shared := &tls.Config{InsecureSkipVerify: true, SessionTicketsDisabled: true}
	c, err := tls.Dial("tcp", server.Listener.Addr().String(), shared.Clone())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	FreeHandshake(c, shared)
	if state := c.ConnectionState(); state.PeerCertificates != nil || state.VerifiedChains != nil {
		t.Error("the connection keeps certificates")
	}
	if hand := field[bytes.Buffer](c, "hand"); hand == nil || hand.Cap() != 0 {
		t.Error("the connection keeps the messages of its handshake")
	}
	if config := field[*tls.Config](c, "config"); config == nil || *config != shared {
		t.Error("the connection keeps a configuration of its own")
	}
	b := BufferOf(c)
	memory := make([]byte, 0, 64<<10)
	for range 3 {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if !b.CanGiveMemory() {
			t.Fatal("the connection takes no memory")
		}
		b.GiveMemory(memory)
		if _, err := io.ReadFull(c, make([]byte, 1<<18)); err != nil {
			t.Fatal(err)
		}
		for !b.IsEmpty() {
			if _, err := c.Read(make([]byte, 1<<16)); err != nil {
				t.Fatal(err)
			}
		}
		if memory = b.TakeBack(); cap(memory) < 64<<10 {
			t.Errorf("TakeBack returned %d bytes, want at least 64 KiB", cap(memory))
		}
		if b.records.Cap() != 0 || b.plain.Size() != 0 {
			t.Errorf("the connection keeps a buffer of %d bytes", b.records.Cap())
		}
	}
}
