package cli

import (
	"errors"
	"net/http"

	"github.com/weir-metrics/weir/api/autoscaling"
	"github.com/weir-metrics/weir/api/eventsapi"
	"github.com/weir-metrics/weir/api/explainapi"
	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/resizeapi"
	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/api/weirdev"
)

// Weir is a client of all APIs of one weir. Its errors say what to do.
type Weir struct {
	*usageClient
	*explainClient
	*scalingClient
	*nodeClient
	*resizeClient
	*eventsClient
}

type (
	usageClient   = usage.Client
	explainClient = explainapi.Client
	scalingClient = autoscaling.Client
	nodeClient    = nodeapi.Client
	resizeClient  = resizeapi.Client
	eventsClient  = eventsapi.Client
)

// NewWeir returns the weir with the root URL base. advise adds to an error what the user can do.
// Advised is enough if weir itself reports that.
func NewWeir(base string, client *http.Client, advise func(error) error) (*Weir, error) {
	c, err := weirdev.NewClient(base, client)
	if err != nil {
		return nil, Usage(err)
	}
	c.Advise = advise
	return &Weir{&usageClient{Weir: c}, &explainClient{Weir: c}, &scalingClient{Weir: c}, &nodeClient{Weir: c}, &resizeClient{Weir: c}, &eventsClient{Weir: c}}, nil
}

// Answer returns the status and the hint of a response that reports an error. ok is false for any
// other error. Only weir itself gives hints.
func Answer(err error) (status int, hint string, ok bool) {
	var p *weirdev.Problem
	if !errors.As(err, &p) {
		return 0, "", false
	}
	return p.Status, p.Hint, true
}

// Unknown reports whether weir answered that it does not know the object.
func Unknown(err error) bool {
	status, hint, _ := Answer(err)
	return status == http.StatusNotFound && hint != ""
}

// Advised adds to err the hint that the server sent with it.
func Advised(err error) error {
	if _, hint, _ := Answer(err); hint != "" {
		return Hintf(err, "%s", hint)
	}
	return err
}
