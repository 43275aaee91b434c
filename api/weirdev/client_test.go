package weirdev

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestClient checks which paths the client requests, and how it reports answers that it cannot use.
func TestClient(t *testing.T) {
	weir := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/proxy" + Path + "nodes/a%2Fb%3Fc":
			Answer(w, http.StatusOK, map[string]string{"query": r.URL.RawQuery})
		case "/proxy" + Path + "nodes/unknown":
			Fail(w, &Problem{Status: http.StatusNotFound, Message: "weir knows no node unknown", Hint: "Is it right?"})
		case "/proxy" + Path + "nodes/half":
			io.WriteString(w, `{"query":`)
		default:
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, "<html>a proxy's page</html>")
		}
	}))
	defer weir.Close()
	c, err := NewClient(weir.URL+"/proxy", weir.Client())
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) (query string, err error) {
		var got struct{ Query string }
		err = c.Get(t.Context(), "the node", []string{"nodes", name}, map[string][]string{"q": {"1 2"}}, &got)
		return got.Query, err
	}
	if query, err := get("a/b?c"); err != nil || query != "q=1+2" {
		t.Errorf("a name with a slash: %q, %v, want q=1+2", query, err)
	}
	for name, want := range map[string]Problem{
		"unknown": {Status: http.StatusNotFound, Message: "weir knows no node unknown", Hint: "Is it right?"},
		"proxy":   {Status: http.StatusBadGateway, Message: "502 Bad Gateway"},
	} {
		var p *Problem
		if _, err := get(name); !errors.As(err, &p) || *p != want {
			t.Errorf("%s: %#v, want %#v", name, err, want)
		}
	}
	for name, want := range map[string]string{"half": "read the answer about the node", "..": `nothing can be called ".."`, "": `nothing can be called ""`} {
		if _, err := get(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestNewClientRefusesWhatIsNoURL(t *testing.T) {
	for _, base := range []string{"", "localhost:8087", "127.0.0.1:80", "ftp://a", "http://"} {
		if _, err := NewClient(base, nil); err == nil || !strings.Contains(err.Error(), "write it as http://") {
			t.Errorf("NewClient(%q): %v, want how to write it", base, err)
		}
	}
}
