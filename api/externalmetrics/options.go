package externalmetrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// Options configures a Provider.
type Options struct {
	// File is where the rules are. Required.
	File string
	// URL is asked in place of the one in the file, if not empty: of a forwarded
	// port, when someone tries the rules from outside the cluster.
	URL string
	// MaxQueries is how many queries may run at once; 0 means 16. The others wait
	// for their turn until their deadline.
	MaxQueries int
	// Reread is how often the file is read even though nothing said that it
	// changed: some file systems tell nobody. 0 means a minute.
	Reread time.Duration
	// Logger gets a line for each reload; nil for none.
	Logger *zap.Logger
	// Registerer gets the provider's own metrics; nil for none.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() (Options, error) {
	if o.File == "" {
		return o, errors.New("no file of rules: name one")
	}
	if o.MaxQueries == 0 {
		o.MaxQueries = 16
	}
	if o.Reread == 0 {
		o.Reread = time.Minute
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, nil
}
