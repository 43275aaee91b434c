package promclient

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestQuery(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = fmt.Sprintf("%s %s query=%q time=%s timeout=%v", r.Method, r.URL.Path, r.FormValue("query"), r.FormValue("time"), r.FormValue("timeout") != "")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[
			{"metric":{"__name__":"up","job":"a"},"value":[1700000000.125,"1e3"]},{"metric":{},"value":[1,"-Inf"]}]},"warnings":["slow"],"infos":["x"]}`)
	}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := open(t, Options{URL: s.URL + "/prom/"}).Query(ctx, "up == 1", time.UnixMilli(1700000000125))
	if err != nil {
		t.Fatal(err)
	}
	want := &Answer{
		Series: []Series{
			{Labels: map[string]string{"__name__": "up", "job": "a"}, Value: 1000, Time: time.UnixMilli(1700000000125)},
			{Labels: map[string]string{}, Value: math.Inf(-1), Time: time.UnixMilli(1000)},
		},
		Warnings: []string{"slow"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := `POST /prom/api/v1/query query="up == 1" time=1700000000.125 timeout=true`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"7"]}}`)
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := open(t, Options{URL: s.URL, CAFile: ca}).Query(t.Context(), "7", time.Now())
	if err != nil || a.Series[0].Value != 7 {
		t.Errorf("with the CA: got %v, %v, want 7", a, err)
	}
	if _, err := open(t, Options{URL: s.URL}).Query(t.Context(), "7", time.Now()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: got %v, want that the certificate is not trusted", err)
	}
	if err := os.WriteFile(ca, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{URL: s.URL, CAFile: ca}); err == nil || !strings.Contains(err.Error(), "holds no PEM certificate") {
		t.Errorf("with an empty CA: got %v", err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("followed to %s with %q", r.URL, r.Header.Get("X-Scope-OrgID"))
	}))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL+"/login", http.StatusFound))
	defer s.Close()
	_, err := open(t, Options{URL: s.URL, Headers: map[string]string{"X-Scope-OrgID": "shop"}}).Query(t.Context(), "7", time.Now())
	var no *Error
	if !errors.As(err, &no) || no.Status != http.StatusFound || !strings.Contains(no.Text, other.URL+"/login") {
		t.Errorf("got %v, want where it redirects to", err)
	}
}

// FuzzDecode asserts that an answer without an error has values and times, and
// that errors are short.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1.5,"1"]}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]}}`, `{"status":"success","data":{"resultType":"scalar","result":null}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":null,"value":null}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1e300,"1e999"]}}`,
		`{"status":"error","errorType":"bad_data","error":"x"}`, `<html>`, ``, `{"status":"success","data":{"resultType":"scalar","result":[1]}}`,
	} {
		f.Add(200, s)
		f.Add(422, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a, err := decode(status, []byte(body))
		if (a == nil) == (err == nil) {
			t.Fatalf("got %v and %v", a, err)
		}
		var no *Error
		if errors.As(err, &no) && (len(no.Text) > 303 || strings.ContainsAny(no.Text, "\r\n")) {
			t.Errorf("an error of %d bytes: %q", len(no.Text), no.Text)
		}
		if err == nil && status/100 != 2 {
			t.Errorf("status %d gave %v", status, a)
		}
		if err != nil {
			return
		}
		for _, s := range a.Series {
			if s.Time.IsZero() {
				t.Errorf("%v has no time", s)
			}
		}
	})
}
