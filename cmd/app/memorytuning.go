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

// heapGrowthPercent is by how much the heap may grow before a collection, in percent of live
// memory. Nearly all of weir's heap lives for minutes, and little of it is garbage. A quarter of
// Go's default therefore costs only one or two more collections a minute, and saves three quarters
// of the size of live memory.
const heapGrowthPercent = 25

// shareOfLimit is the share of the container's memory limit that the heap may use. Near it,
// collections become more frequent. The rest is for memory outside the heap.
const shareOfLimit = 0.9

// tuneCollector sets the parameters of Go's garbage collector, unless the environment sets them
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

// startupTime is the time after the start until a weir is in its steady state: it has listed the
// cluster and read each node twice.
const startupTime = time.Minute

// releaseStartupMemory frees, after startupTime, the memory that only the start needed: the memory
// of a whole cluster's list, which would be freed slowly, and the pages of the binary, which would
// stay. Stop the timer if the process ends earlier.
func releaseStartupMemory(log *zap.Logger) *time.Timer {
	return time.AfterFunc(startupTime, func() {
		debug.FreeOSMemory()
		if err := dropBinaryPages(); err != nil {
			log.Debug("the binary's pages stay resident", zap.Error(err))
		}
	})
}
