package app

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"
)

// heapGrowthPercent is by how much the heap may grow, in percent of what is alive, before it is
// collected. Nearly all of weir's heap lives for minutes and little of it is garbage, so that
// a quarter of Go's default costs one or two collections more a minute, and spares three
// quarters of what is alive.
const heapGrowthPercent = 25

// shareOfLimit is the share of the container's memory limit that the heap keeps below, at the
// cost of more collections; the rest is for what is not the heap.
const shareOfLimit = 0.9

// tuneCollector sets what Go's garbage collector goes by, unless the environment does
// (GOGC, GOMEMLIMIT).
func tuneCollector(log *zap.Logger) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowthPercent)
	}
	_, err := memlimit.Set(memlimit.WithRatio(shareOfLimit), memlimit.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) &&
		!errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		log.Debug("the container's memory limit is not known", zap.Error(err))
	}
}

// startupTime is how long after its start a weir has done once what it does from then on: it
// has listed the cluster, and read each node twice.
const startupTime = time.Minute

// releaseStartupMemory gives back, once settled, what only the start needed: the memory of a whole
// cluster's list, which would go by and by, and the binary's pages, which would stay.
// Stop the timer if the process ends before.
func releaseStartupMemory(log *zap.Logger) *time.Timer {
	return time.AfterFunc(startupTime, func() {
		debug.FreeOSMemory()
		if err := dropBinaryPages(); err != nil {
			log.Debug("the binary's pages stay resident", zap.Error(err))
		}
	})
}
