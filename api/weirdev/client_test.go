package weirdev_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/weirdev"
)

// TestClient checks which paths the client requests, and how it reports answers that it cannot use.
func TestClient(t *testing.T) {
	weir := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/proxy" + weirdev.Path + "nodes/a%2Fb%3Fc":
			weirdev.Answer(w, http.StatusOK, map[string]string{"query": r.URL.RawQuery})
		case "/proxy" + weirdev.Path + "nodes/unknown":
			weirdev.Fail(w, &weirdev.Problem{Status: http.StatusNotFound, Message: "weir does not know node unknown", Hint: "Is it right?"})
		case "/proxy" + weirdev.Path + "nodes/half":
			io.WriteString(w, `{"query":`)
		default:
			w.WriteHeader(http.StatusBadGateway)
			io.WriteString(w, "<html>a proxy's page</html>")
		}
	}))
	defer weir.Close()
	c, err := weirdev.NewClient(weir.URL+"/proxy", weir.Client())
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) (query string, err error) {
		got, err := weirdev.Get[struct{ Query string }](t.Context(), c, "the node", []string{"nodes", name}, map[string][]string{"q": {"1 2"}}, "")
		if err != nil {
			return "", err
		}
		return got.Query, nil
	}
	if query, err := get("a/b?c"); err != nil || query != "q=1+2" {
		t.Errorf("a name with a slash: %q, %v, want q=1+2", query, err)
	}
	for name, want := range map[string]weirdev.Problem{
		"unknown": {Status: http.StatusNotFound, Message: "weir does not know node unknown", Hint: "Is it right?"},
		"proxy":   {Status: http.StatusBadGateway, Message: "502 Bad Gateway"},
	} {
		var p *weirdev.Problem
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
	for _, base := range []string{"", "ftp://a", "http://", "http:///path"} {
		if _, err := weirdev.NewClient(base, nil); err == nil || !strings.Contains(err.Error(), "write it as http://") {
			t.Errorf("weirdev.NewClient(%q): %v, want how to write it", base, err)
		}
	}
}
