package fetch

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzAnswer sends the same bytes to this Transport and to that of net/http. Both must return the
// same answer, or both must fail.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		hello,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nhello",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
		"\x15\x03\x01\x00\x02\x02\x46",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go play(theirs, []string{text})
			return ours, nil
		}
		mine := newTransport(t, Options{Dial: dial})
		std := &http.Transport{DialContext: dial, MaxResponseHeaderBytes: mine.maxHeaderBytes, DisableCompression: true}
		t.Cleanup(std.CloseIdleConnections)
		got, err := get(t.Context(), mine, "http://h/")
		want, stdErr := get(t.Context(), std, "http://h/")
		if want.Status == http.StatusSwitchingProtocols || !strings.HasPrefix(want.Proto, "HTTP/1.") {
			want = answer{Failed: true} // the client never asks for another protocol
		}
		if got.Failed && want.Failed {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q: errors %v and, of net/http, %v (-net/http +fetch):\n%s", text, err, stdErr, diff)
		}
	})
}
