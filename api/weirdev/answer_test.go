package weirdev_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/test/cmptest"
)

// TestAnswerEncodesBeforeTheStatus checks that a body that cannot be encoded is an error for the client,
// and not status 200 with an empty body.
func TestAnswerEncodesBeforeTheStatus(t *testing.T) {
	w := httptest.NewRecorder()
	weirdev.Answer(w, http.StatusOK, map[string]float64{"cpu": math.NaN()})
	var got struct {
		Kind, Reason, Message string
		Code                  int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("body %q: %v, want a Status", w.Body, err)
	}
	if w.Code != http.StatusInternalServerError || got.Code != w.Code || got.Kind != "Status" || got.Reason != "InternalError" || !strings.HasPrefix(got.Message, "encode the answer: ") {
		t.Errorf("a NaN is answered with %d %+v, want 500 and a Status that begins with %q", w.Code, got, "encode the answer: ")
	}
}

var routes = weirdev.Routes{
	{Path: "things"},
	{Path: "namespaces/{namespace}/things/{name}/view", Parameters: []string{"part", "size"}},
	{Path: "lists", Parameters: []string{"filter"}, EmptyValues: true},
}

func TestRoutes(t *testing.T) {
	type result struct {
		Path          string
		Names, Values map[string]string
	}
	none := map[string]string{}
	for target, want := range map[string]result{
		"things":                     {"things", none, none},
		"things?limit=500&timeout=5": {"things", none, none},
		"lists?filter=":              {"lists", none, map[string]string{"filter": ""}},
		"namespaces/a/things/b%2Fc/view?part=x&size=1": {
			"namespaces/{namespace}/things/{name}/view", map[string]string{"namespace": "a", "name": "b/c"}, map[string]string{"part": "x", "size": "1"},
		},
	} {
		got, err := routes.Parse(httptest.NewRequest(http.MethodGet, weirdev.Path+target, nil))
		if err != nil {
			t.Errorf("%s: %v, want %+v", target, err, want)
			continue
		}
		cmptest.Equal(t, target, want, result{got.Path, got.Names, got.Values})
	}
	want := []string{weirdev.Path + "things", weirdev.Path + "namespaces/{namespace}/things/{name}/view", weirdev.Path + "lists"}
	if got := routes.Patterns(); !slices.Equal(got, want) {
		t.Errorf("patterns %q, want %q", got, want)
	}
}

func TestRoutesRefuse(t *testing.T) {
	const paths = "Valid paths below " + weirdev.Path + ": things, namespaces/NAMESPACE/things/NAME/view and lists."
	f := func(target string, status int, message, hint string) {
		t.Helper()
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		_, err = routes.Parse(&http.Request{URL: u})
		p, ok := errors.AsType[*weirdev.Problem](err)
		if want := (weirdev.Problem{Status: status, Message: message, Hint: hint}); !ok || *p != want {
			t.Errorf("%s: %#v, want %#v", target, err, want)
		}
	}
	f("/elsewhere", 404, `unknown path "/elsewhere"`, paths)
	f(weirdev.Path+"%74hings", 404, `unknown path "`+weirdev.Path+`things"`, paths)
	f(weirdev.Path+"namespaces/../things/x/view", 404, `unknown path "`+weirdev.Path+`namespaces/../things/x/view"`, paths)
	f(weirdev.Path+"namespaces//things/x/view", 404, `unknown path "`+weirdev.Path+`namespaces//things/x/view"`, paths)
	f(weirdev.Path+"things?x=1", 400, `unknown parameter "x"`, "This path takes no parameters.")
	const parameters = "Parameters of this path: part, size."
	f(weirdev.Path+"namespaces/a/things/b/view?part=1&part=2", 400, "parameter part needs one value", parameters)
	f(weirdev.Path+"namespaces/a/things/b/view?size=", 400, "parameter size needs one value", parameters)
	f(weirdev.Path+"namespaces/a/things/b/view?size=%zz", 400, `invalid URL escape "%zz"`, parameters)
}

func TestReadHandler(t *testing.T) {
	h := weirdev.ReadHandler("things are read-only", routes.Parse, func(_ context.Context, r *weirdev.Request) (map[string]string, error) {
		if r.Path == "lists" {
			return nil, errors.New("the disk is full")
		}
		return map[string]string{"path": r.Path}, nil
	})
	f := func(method, target string, status int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, weirdev.Path+target, nil))
		if w.Code != status || !strings.Contains(w.Body.String(), body) {
			t.Errorf("%s %s: %d %s, want %d with %s", method, target, w.Code, w.Body, status, body)
		}
	}
	f("GET", "things", 200, `{"path":"things"}`)
	f("PUT", "things", 405, `"message":"things are read-only","hint":"Use GET."`)
	f("GET", "nothing", 404, `"message":"unknown path`)
	f("GET", "lists", 500, `"reason":"InternalError","code":500,"message":"the disk is full"`)
}
