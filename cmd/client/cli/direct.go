package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/weir-metrics/weir/internal/humanize"
)

// Direct returns the weir at the URL server. assumed reports that the user did not name it: it is the
// usual address of a weir on this machine.
func Direct(server string, assumed bool) (*Weir, error) {
	shown := humanize.URL(server)
	return NewWeir(server, &http.Client{}, func(err error) error { return adviseDirect(shown, assumed, err) })
}

// adviseDirect describes what to do if the weir at server does not answer.
func adviseDirect(server string, assumed bool, err error) error {
	var dial *net.OpError
	refused := errors.As(err, &dial) && dial.Op == "dial"
	status, hint, _ := Answer(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Hintf(fmt.Errorf("%s did not answer in time", server), "Allow it more with --timeout=30s.")
	case refused && assumed:
		return Hintf(fmt.Errorf("no weir runs on this machine: nothing answers at %s", server),
			"Start one with:    weir run\nOr name another:   --server=URL (or $WEIR_SERVER)")
	case refused:
		return Hintf(fmt.Errorf("cannot reach %s: %w", server, dial.Err),
			"Is weir running there? --server=URL (or $WEIR_SERVER) names it.")
	case strings.Contains(err.Error(), "gave HTTP response to HTTPS client"):
		return Hintf(fmt.Errorf("%s answers without TLS", server), "Write its URL with http://.")
	case status == http.StatusNotFound && hint == "":
		return Hintf(fmt.Errorf("something answers at %s, but it is not a weir of this version: %w", server, err),
			"The URL ends with the port: --server=http://HOST:PORT")
	}
	return Advised(err)
}
