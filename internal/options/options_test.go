package options_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-metrics/weir/internal/options"
	"github.com/weir-metrics/weir/test/cmptest"
)

type inner struct{ Verbose bool }

type outer struct {
	inner
	Names map[string]string
	Path  string
}

var table = append(options.Within(options.Table[inner]{
	{Name: "verbose", Help: "more lines", Set: func(o *inner, v string) (err error) { o.Verbose, err = options.Bool(v); return err }},
}, func(o *outer) *inner { return &o.inner }), options.Table[outer]{
	{Name: "name", Alias: "names", Help: "NAME=VALUE; repeatable", SetAll: func(o *outer, all []string) (err error) { o.Names, err = options.Pairs(all); return err }},
	{Name: "path", Help: "of a file", Set: func(o *outer, v string) error { o.Path = v; return nil }},
}...)

func TestParse(t *testing.T) {
	for query, want := range map[string]outer{
		"":                         {},
		"verbose":                  {inner: inner{true}},
		"verbose=false&path=p":     {Path: "p"},
		"name=a=1&name=b=2":        {Names: map[string]string{"a": "1", "b": "2"}},
		"names=a=1=2&verbose=true": {inner: inner{true}, Names: map[string]string{"a": "1=2"}},
	} {
		var got outer
		if err := table.Parse(&got, values(t, query)); err != nil {
			t.Errorf("%q: %v", query, err)
		}
		cmptest.Equal(t, fmt.Sprintf("%q", query), want, got, cmp.AllowUnexported(outer{}, inner{}))
	}
}

func TestParseMistakes(t *testing.T) {
	for query, want := range map[string]string{
		"verbos":        `no option is called "verbos": there are verbose, name, path`,
		"path=a&path=b": "option path is given 2 times: give it once",
		"verbose=maybe": `option verbose: "maybe" is neither true nor false`,
		"name=secret":   "option name: it is not of the form NAME=VALUE",
	} {
		var o outer
		if err := table.Parse(&o, values(t, query)); err == nil || err.Error() != want {
			t.Errorf("%q: got error %v, want %s", query, err, want)
		}
	}
	if err := options.NoConfig("x", "log:?verbose"); err == nil || err.Error() != `there is no configuration before the question mark, got "x": write log:?verbose` {
		t.Errorf("a configuration where there is none: got error %v", err)
	}
}

func TestHelp(t *testing.T) {
	const want = "  name                  NAME=VALUE; repeatable\n  path                  of a file\n  verbose               more lines"
	if got := table.Sorted().Help(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func values(t *testing.T, query string) url.Values {
	t.Helper()
	all, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
