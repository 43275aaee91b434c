package fetch

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestWriteRequest(t *testing.T) {
	f := func(method, address, want string, header ...string) {
		t.Helper()
		req, err := http.NewRequest(method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		var got bytes.Buffer
		if err := writeRequest(&got, req); err != nil || got.String() != want {
			t.Errorf("got %q and error %v, want %q", got.String(), err, want)
		}
	}
	f("GET", "https://h:1/a?b=c", "GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nUser-Agent: Go-http-client/1.1\r\nAuthorization: Bearer x\r\n\r\n", "Authorization", "Bearer x")
	f("GET", "https://[fe80::1%25eth0]:1", "GET / HTTP/1.1\r\nHost: [fe80::1]:1\r\nUser-Agent: other\r\n\r\n", "User-Agent", "other")
}

func TestWriteRequestRefuses(t *testing.T) {
	f := func(want string, change func(r *http.Request)) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, "http://h/", nil)
		if err != nil {
			t.Fatal(err)
		}
		change(req)
		var got bytes.Buffer
		if err := writeRequest(&got, req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %q and error %v, want %q", got.String(), err, want)
		}
	}
	f("is not GET or HEAD", func(r *http.Request) { r.Method = "POST" })
	f("is not valid in a request", func(r *http.Request) { r.Host = "h\r\nX: y" })
	f("is not valid in a request", func(r *http.Request) { r.Host, r.URL.Host = "", "h h" })
	f("can't write control character", func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX: y" })
	f("has a control character", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x\ny") })
	f("is not a valid name", func(r *http.Request) { r.Header["X: y\r\nZ"] = []string{""} })
	f("with a body cannot be sent", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) })
}

// FuzzRequest checks that net/http's server reads the request that was written: no part of a
// request can change its meaning.
func FuzzRequest(f *testing.F) {
	f.Add("/metrics/resource", "a=b", "10.0.0.1:10250", "Authorization", "Bearer x")
	f.Add("/a b", "", "h", "X", "y\r\nZ: w")
	f.Fuzz(func(t *testing.T, path, query, host, name, value string) {
		req := &http.Request{
			Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: host, Path: path, RawQuery: query},
			Header: http.Header{name: {value}},
		}
		var wire bytes.Buffer
		if err := writeRequest(&wire, req); err != nil {
			return
		}
		from := bufio.NewReader(bytes.NewReader(wire.Bytes()))
		got, err := http.ReadRequest(from)
		if err != nil {
			return // the request is refused, which is safe
		}
		sent, err := io.ReadAll(got.Body)
		if err != nil || len(sent) > 0 || from.Buffered() != 0 {
			t.Fatalf("%q carries %q (error %v) and leaves %d bytes, want no body and 0", wire.Bytes(), sent, err, from.Buffered())
		}
		if got.RequestURI != req.URL.RequestURI() || got.Host != host {
			t.Fatalf("%q asks %q for %q, want %q for %q", wire.Bytes(), got.Host, got.RequestURI, host, req.URL.RequestURI())
		}
		delete(got.Header, "User-Agent")
		delete(got.Header, "Content-Length")
		if len(got.Header) > 1 {
			t.Fatalf("%q has header %q, want at most one field", wire.Bytes(), got.Header)
		}
	})
}
