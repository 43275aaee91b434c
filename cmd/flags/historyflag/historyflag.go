// Package historyflag reads --history, which names the Prometheus that has the metrics from before
// weir's own memory.
package historyflag

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/weir-metrics/weir/cmd/client/cli"
	"github.com/weir-metrics/weir/cmd/flags/stageflag"
	"github.com/weir-metrics/weir/internal/history"
	"github.com/weir-metrics/weir/internal/humanize"
	"github.com/weir-metrics/weir/internal/options"
)

// Usage is the help of --history.
const Usage = "where to read numbers that are older than weir's own memory, for the model API and the page: prometheus:URL of a server that scrapes /metrics/cluster or receives --sink=remotewrite; see weir help history"

// table has the options of the server.
var table = options.Table[history.Options]{
	options.Field("ca", "file of CA certificates that verify the server", func(o *history.Options) *string { return &o.CAFile }, options.Text),
	{Name: "header", Help: "NAME=VALUE sent with each question; repeatable", SetAll: func(o *history.Options, values []string) (err error) {
		o.Headers, err = options.Pairs(values)
		return err
	}},
	options.Field("password-file", "of username", func(o *history.Options) *string { return &o.PasswordFile }, options.Text),
	options.Field("token-file", "file of a bearer token", func(o *history.Options) *string { return &o.BearerTokenFile }, options.Text),
	options.Field("username", "to send, with the password", func(o *history.Options) *string { return &o.Username }, options.Text),
}

// Help is the help page of the flag.
var Help = `weir remembers fifteen minutes. A Prometheus-compatible server that scrapes weir's
/metrics/cluster (with honor_labels: true), or that weir writes to
(--sink=remotewrite), knows weir's series for longer:
  --history=prometheus:http://prometheus:9090
The model API (start=) and the page's lines then go back as far as it does, and have
no gap after weir was restarted. While it does not answer, they begin with weir's
own memory. Of most metrics it knows only what is scraped or written with
profile=all; see docs/prometheus.md.

` + table.Help()

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
	o := &history.Options{URL: s.Config, MaxAnswer: MaxAnswer}
	if err := table.Parse(o, s.Options); err != nil {
		return nil, err
	}
	if (o.Username == "") != (o.PasswordFile == "") {
		return nil, errors.New("username and password-file belong together: give both")
	}
	return o, nil
}
