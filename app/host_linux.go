package app

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/manager"
	"github.com/weir-metrics/weir/sources/host"
)

// thisHost is the one source that reads this machine.
type thisHost struct {
	*host.Host
	specs []manager.Spec
}

// openHost opens the source at once, so that a machine that cannot be read at all
// is an error of the command and not of every round, and logs what this machine
// cannot supply.
func openHost(p hostPlan, log *zap.Logger) (opened, error) {
	h, err := host.New(p.Options)
	if err != nil {
		return nil, fmt.Errorf("read this machine: %w", err)
	}
	for _, gap := range h.Gaps() {
		log.Info("this machine cannot supply everything", zap.String("gap", gap))
	}
	return &thisHost{h, []manager.Spec{{
		Name: "host/" + string(p.Node), Kind: "host", Node: p.Node, Interval: p.Interval,
		Open: func() (manager.Source, error) { return h, nil },
	}}}, nil
}

// Sources returns the one source.
func (h *thisHost) Sources(*cluster.Facts) []manager.Spec { return h.specs }
