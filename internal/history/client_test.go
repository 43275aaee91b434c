package history

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
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/util/cert"
)

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
		Series: []InstantValue{
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

func TestQueryRange(t *testing.T) {
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = fmt.Sprintf("%s %s query=%q start=%s end=%s step=%s", r.Method, r.URL.Path, r.FormValue("query"), r.FormValue("start"), r.FormValue("end"), r.FormValue("step"))
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"job":"a"},"values":[[1700000000.001,"1"],[1700000015.001,"NaN"]]},{"metric":{},"values":[[1700000000,"2"]]}]},"warnings":["slow"]}`)
	}))
	defer s.Close()
	from := time.UnixMilli(1700000000001)
	got, err := open(t, Options{URL: s.URL}).Range(t.Context(), "up", from, from.Add(15*time.Second), 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := []TimeSeries{
		{Labels: map[string]string{}, Points: []Point{{At: time.Unix(1700000000, 0), Value: 2}}},
		{Labels: map[string]string{"job": "a"}, Points: []Point{{At: from, Value: 1}, {At: from.Add(15 * time.Second), Value: math.NaN()}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := `POST /api/v1/query_range query="up" start=1700000000.001 end=1700000015.001 step=15.000`; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
}

func TestDecodeLinesRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":"success","data":{"resultType":"vector","result":[]}}`:                                         `it is a "vector" and not a matrix`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"histograms":[[1,{}]]}]}}`:      "returns a histogram",
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[2,"1"],[1,"1"]]}]}}`: "not in order of time",
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1",2]]}]}}`:       "not a time and a number",
		`{"status":"error","errorType":"bad_data","error":"parse error: unexpected end of input"}`:                "Prometheus answered 200: bad_data: parse error: unexpected end of input",
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"one"]]}]}}`:       "invalid syntax",
	} {
		if got, err := decodeRange(http.StatusOK, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", body, got, err, want)
		}
	}
}

// FuzzDecodeLines checks that the points of a successful answer are in order of time, and that an
// error has no points.
func FuzzDecodeLines(f *testing.F) {
	for _, s := range []string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1.5,"1"],[2,"NaN"]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":null,"values":null}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":null}}`, `{"status":"error","error":"x"}`, `<html>`, ``,
	} {
		f.Add(200, s)
		f.Add(422, s)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		a, err := decodeRange(status, []byte(body))
		if a != nil && err != nil {
			t.Fatalf("got %v and %v", a, err)
		}
		if err != nil {
			return
		}
		if status/100 != 2 {
			t.Errorf("status %d gave %v", status, a)
		}
		for _, line := range a {
			for i := 1; i < len(line.Points); i++ {
				if !line.Points[i].At.After(line.Points[i-1].At) {
					t.Errorf("points %v and %v are not in order", line.Points[i-1], line.Points[i])
				}
			}
		}
	})
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"7"]}}`)
	}))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	right := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(ca, right, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := open(t, Options{URL: s.URL, CAFile: ca}).Query(t.Context(), "7", time.Now())
	if err != nil || a.Series[0].Value != 7 {
		t.Errorf("with the CA: got %v, %v, want 7", a, err)
	}
	if _, err := open(t, Options{URL: s.URL}).Query(t.Context(), "7", time.Now()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: got %v, want that the certificate is not trusted", err)
	}
	another, _, err := cert.GenerateSelfSignedCertKey("another", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, another, 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, Options{URL: s.URL, CAFile: ca})
	if _, err := c.Query(t.Context(), "7", time.Now()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with another CA: got %v, want that the certificate is not trusted", err)
	}
	if err := os.WriteFile(ca, right, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Query(t.Context(), "7", time.Now()); err != nil {
		t.Errorf("after the CA was renewed: %v", err)
	}
	if err := os.WriteFile(ca, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{URL: s.URL, CAFile: ca}); err == nil || !strings.Contains(err.Error(), ca) {
		t.Errorf("with an empty CA: got %v", err)
	}
}

// Errors never have the password or the query of the server's URL.
func TestURLIsShownWithoutSecrets(t *testing.T) {
	s := httptest.NewServer(nil)
	s.Close()
	for _, address := range []string{"http://weir:geheim@host:port", "ftp://weir:geheim@host", "http://weir:geheim%zz@host", strings.Replace(s.URL, "//", "//geheim@", 1) + "?key=geheim"} {
		c, err := New(Options{URL: address})
		if err == nil {
			_, err = c.Query(t.Context(), "up", time.Now())
		}
		if err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", address, err)
		}
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

// FuzzDecode checks that a successful answer has values and times, and that errors are short.
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
