// Package connect is how weir's commands find a weir to ask, and how they say what to do when
// none answers. location.go has the flags that say where weir is, direct.go the advice for a
// weir at a URL, cluster.go the advice for the weir of a cluster, completion.go names for a shell.
package connect

import (
	"errors"
	"net/http"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
	"github.com/weir-metrics/weir/client/cli"
)

// Weir is a weir that can be asked: it has the methods of the clients of all its APIs. Its
// errors say what to do.
type Weir struct {
	*usageClient
	*explainClient
	*scalingClient
	*nodeClient
	*resizeClient
}

type (
	usageClient   = usage.Client
	explainClient = explainapi.Client
	scalingClient = autoscaling.Client
	nodeClient    = nodeapi.Client
	resizeClient  = resizeapi.Client
)

// New returns the weir whose root is at base. Advise adds to an error what the user can do;
// Advised is enough if weir itself said so.
func New(base string, client *http.Client, advise func(error) error) (*Weir, error) {
	c, err := weirdev.NewClient(base, client)
	if err != nil {
		return nil, cli.Usage(err)
	}
	c.Advise = advise
	return &Weir{usage.NewClient(c), explainapi.NewClient(c), autoscaling.NewClient(c), nodeapi.NewClient(c), resizeapi.NewClient(c)}, nil
}

// Answer returns the status and the hint of an answer that reports an error; ok is false for any
// other error. Only weir itself gives hints.
func Answer(err error) (status int, hint string, ok bool) {
	var p *weirdev.Problem
	if !errors.As(err, &p) {
		return 0, "", false
	}
	return p.Status, p.Hint, true
}

// Unknown reports whether weir answered that it does not know what it was asked about.
func Unknown(err error) bool {
	status, hint, _ := Answer(err)
	return status == http.StatusNotFound && hint != ""
}

// Advised gives err the hint that the server itself sent with it.
func Advised(err error) error {
	if _, hint, _ := Answer(err); hint != "" {
		return cli.Hintf(err, "%s", hint)
	}
	return err
}
