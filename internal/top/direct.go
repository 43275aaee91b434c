package top

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/weir-metrics/weir/api/usage"
	"github.com/weir-metrics/weir/internal/cli"
)

// Direct asks the weir at a URL, and explains when nobody answers there.
type Direct struct {
	client *usage.Client
	// assumed says that nobody named the server: it is where one usually is.
	assumed bool
}

// NewDirect returns a Lister for the weir at server. Assumed says that the user
// did not name it, but that it is where a weir on this machine usually is.
func NewDirect(server string, assumed bool) (*Direct, error) {
	client, err := usage.NewClient(server, &http.Client{})
	if err != nil {
		return nil, cli.Usage(err)
	}
	return &Direct{client, assumed}, nil
}

// List asks for a list.
func (d *Direct) List(ctx context.Context, r usage.Resource, q usage.Query) (*usage.List, error) {
	list, err := d.client.List(ctx, r, q)
	var dial *net.OpError
	refused := errors.As(err, &dial) && dial.Op == "dial"
	switch {
	case err == nil:
		return list, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, cli.Hintf(fmt.Errorf("%s did not answer in time", d.client.Server()), "Allow it more with --timeout=30s.")
	case refused && d.assumed:
		return nil, cli.Hintf(fmt.Errorf("no weir runs on this machine: nothing answers at %s", d.client.Server()),
			"Start one with:    weir run\nOr name another:   --server=URL (or $WEIR_SERVER)")
	case refused:
		return nil, cli.Hintf(fmt.Errorf("cannot reach %s: %w", d.client.Server(), dial.Err),
			"Is weir running there? --server=URL (or $WEIR_SERVER) names it.")
	case strings.Contains(err.Error(), "gave HTTP response to HTTPS client"):
		return nil, cli.Hintf(fmt.Errorf("%s answers without TLS", d.client.Server()), "Write its URL with http://.")
	}
	if problem := (*usage.Problem)(nil); errors.As(err, &problem) && problem.Status == http.StatusNotFound && problem.Hint == "" {
		return nil, cli.Hintf(fmt.Errorf("something answers at %s, but it is no weir: %s", d.client.Server(), problem.Message),
			"The URL ends with the port: --server=http://HOST:PORT")
	}
	return nil, Explain(err)
}

// Explain gives an error the hint that the server itself sent with it.
func Explain(err error) error {
	var problem *usage.Problem
	if errors.As(err, &problem) && problem.Hint != "" {
		return cli.Hintf(err, "%s", problem.Hint)
	}
	return err
}
