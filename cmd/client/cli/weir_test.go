package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/metric"
)

// If something else answers at the URL, the error says that it is not a weir.
func TestNotAWeir(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	f := func(url, want string) {
		t.Helper()
		w, err := Direct(url, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.List(t.Context(), usage.Nodes, usage.Query{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("list %s: %v, want it to say %q", url, err, want)
		}
		if _, err = w.Node(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("explain %s: %v, want it to say %q", url, err, want)
		}
	}
	f(other.URL, "but it is not a weir")
	f(strings.Replace(other.URL, "http://", "https://", 1), "answers without TLS")
	f(strings.Replace(other.URL, "http://", "http://user:secret@", 1), "http://xxxxx@")
}

// The hints of weir reach the user, from each of its APIs.
func TestHintsArriveFromEveryAPI(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","message":"weir knows no such thing","hint":"Look elsewhere."}`)
	}))
	defer srv.Close()
	w, err := Direct(srv.URL, true)
	if err != nil {
		t.Fatal(err)
	}
	ref := metric.PodRef{Namespace: "shop", Name: "web"}
	for name, ask := range map[string]func() error{
		"list":      func() error { _, err := w.List(t.Context(), usage.Pods, usage.Query{}); return err },
		"pod":       func() error { _, err := w.Pod(t.Context(), ref); return err },
		"container": func() error { _, err := w.Container(t.Context(), ref, "app"); return err },
		"node":      func() error { _, err := w.Node(t.Context(), "n1"); return err },
		"missing":   func() error { _, err := w.Missing(t.Context(), "shop"); return err },
	} {
		err := ask()
		var hint *Hint
		if !errors.As(err, &hint) || hint.Try != "Look elsewhere." || err.Error() != "weir knows no such thing" || !Unknown(err) {
			t.Errorf("%s: got %v, want what the server says, with its hint", name, err)
		}
	}
}
