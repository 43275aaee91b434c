package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"
)

// growth is by how much the heap may grow, in percent of what is alive, before it is
// collected. Nearly all of weir's heap lives for minutes and little of it is garbage, so that
// half of Go's default costs a collection more a minute, and a third less memory.
const growth = 50

// ofLimit is the share of the container's memory limit that the heap keeps below, at the
// cost of more collections; the rest is for what is not the heap.
const ofLimit = 0.9

// tuneCollector sets what Go's garbage collector goes by, unless the environment does
// (GOGC, GOMEMLIMIT).
func tuneCollector(log *zap.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	_, err := memlimit.Set(memlimit.WithRatio(ofLimit), memlimit.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) &&
		!errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		log.Debug("the container's memory limit is not known", zap.Error(err))
	}
}
