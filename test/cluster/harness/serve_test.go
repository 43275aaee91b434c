//go:build linux && e2e

package harness

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// serveTLS serves on this machine, at an address that the cluster can reach.
func serveTLS(t *testing.T, host netip.Addr, handler http.Handler) (io.Closer, netip.AddrPort) {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	listener, err := net.Listen("tcp", netip.AddrPortFrom(host, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	s.Listener.Close()
	s.Listener = listener
	s.StartTLS()
	return closer(s.Close), netip.MustParseAddrPort(listener.Addr().String())
}

type closer func()

func (c closer) Close() error { c(); return nil }
