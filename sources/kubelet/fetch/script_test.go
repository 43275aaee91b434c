package fetch

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
)

// script is a server that sends prepared bytes: for each connection, one answer for each request.
// It closes a connection after its last answer.
type script struct {
	listener net.Listener
	made     chan net.Conn // each connection that was opened
}

func newScript(t testing.TB, connections ...[]string) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{listener: l, made: make(chan net.Conn, len(connections))}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, answers := range connections {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.made <- c
			play(c, answers)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		for {
			select {
			case c := <-s.made:
				c.Close()
			case <-done:
				return
			}
		}
	})
	return s
}

// play sends the answer to each request on a connection. An empty answer ends the connection.
func play(c net.Conn, answers []string) {
	defer c.Close()
	from := bufio.NewReader(c)
	for _, a := range answers {
		req, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		if _, err := io.WriteString(c, a); err != nil {
			return
		}
	}
}

// url returns the URL of the server.
func (s *script) url() string { return "http://" + s.listener.Addr().String() + "/x" }

// answer is the result of a request, in a form that can be compared.
type answer struct {
	Proto  string
	Status int
	Header http.Header
	Body   string
	Failed bool // whether it failed, before the body or in it
}

// get sends a request with any RoundTripper. If the answer is not complete, it also returns the
// reason.
func get(ctx context.Context, rt http.RoundTripper, url string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{Failed: true}, err
	}
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return answer{Failed: true}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{Proto: resp.Proto, Status: resp.StatusCode, Header: resp.Header, Body: string(body), Failed: err != nil}, err
}
