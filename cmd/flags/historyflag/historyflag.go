// Package historyflag reads --history, which names the Prometheus that has the metrics from before
// weir's own memory.
package historyflag

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/humanize"
)

// Usage is the help of --history.
const Usage = "where to read numbers that are older than weir's own memory, for the model API and the page: prometheus:URL of a server that scrapes /metrics/cluster or receives --sink=remotewrite; see weir help history"

// Help is the help page of the flag.
const Help = `weir remembers fifteen minutes. A Prometheus-compatible server that scrapes weir's
/metrics/cluster (with honor_labels: true), or that weir writes to
(--sink=remotewrite), knows weir's series for longer:
  --history=prometheus:http://prometheus:9090
The model API (start=) and the page's lines then go back as far as it does, and have
no gap after weir was restarted. While it does not answer, they begin with weir's
own memory. Of most metrics it knows only what is scraped or written with
profile=all; see docs/prometheus.md.

  ca                    file of CA certificates that verify the server
  header                NAME=VALUE sent with each question; repeatable
  password-file         of username
  token-file            file of a bearer token
  username              to send, with the password`

// New returns the flag without a value.
func New() stageflag.StageList {
	return stageflag.StageList{What: "history", Known: []string{"prometheus"}}
}

// MaxAnswer limits one answer of Prometheus, in bytes. 5,500 points of a few containers need much
// less.
const MaxAnswer = 64 << 20

// Compile reads --history. It returns nil if the flag is not given.
func Compile(given stageflag.StageList) (*history.Options, error) {
	switch len(given.Stages) {
	case 0:
		return nil, nil
	case 1:
		o, err := parse(given.Stages[0])
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--history: %w", err))
		}
		return o, nil
	}
	return nil, cli.Usage(errors.New("--history: one server is asked: name one"))
}

func parse(s stageflag.Stage) (*history.Options, error) {
	if u, err := url.Parse(s.Config); err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is not the address of a server: write --history=prometheus:http://HOST:PORT", humanize.URL(s.Config))
	}
	known := []string{"ca", "header", "password-file", "token-file", "username"}
	for name := range s.Options {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no option is called %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	o := &history.Options{
		URL: s.Config, MaxAnswer: MaxAnswer, CAFile: s.Options.Get("ca"), BearerTokenFile: s.Options.Get("token-file"),
		Username: s.Options.Get("username"), PasswordFile: s.Options.Get("password-file"), Headers: map[string]string{},
	}
	for _, h := range s.Options["header"] {
		key, value, ok := strings.Cut(h, "=")
		if !ok || key == "" {
			return nil, errors.New("a header must have the form NAME=VALUE")
		}
		o.Headers[key] = value
	}
	if (o.Username == "") != (o.PasswordFile == "") {
		return nil, errors.New("username and password-file belong together: give both")
	}
	return o, nil
}
