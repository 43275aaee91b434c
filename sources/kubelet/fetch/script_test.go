package fetch

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
)

// script is a server that says, connection by connection, what it was told to say:
// one answer for each request, as bytes. After the last answer of a connection it
// closes it.
type script struct {
	listener net.Listener
	made     chan net.Conn // each connection that was made
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

// play gives each request on a connection its answer. An answer that is empty is
// none: the connection ends.
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

// url is where the script is played.
func (s *script) url() string { return "http://" + s.listener.Addr().String() + "/x" }

// answer is what came of a request, to be compared.
type answer struct {
	Proto  string
	Status int
	Header http.Header
	Body   string
	Failed bool // before the body or in it
}

// get asks with any RoundTripper, and returns why there is no whole answer too.
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
