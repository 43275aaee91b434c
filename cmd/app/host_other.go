//go:build !linux

package app

import (
	"errors"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/api/nodeapi/oomkills"
	"github.com/weir-metrics/weir/internal/feature"
)

var errOnlyLinux = errors.New("read this machine: only Linux has cgroups to read")

func openHost(*weirProcess, *hostPlan) error { return errOnlyLinux }

func openMachine(*hostPlan, nodePods, *feature.Host) (*machine, error) { return nil, errOnlyLinux }

func watchKills(*oomkills.Watch, *zap.Logger) error { return errOnlyLinux }

// dropBinaryPages does nothing: weir can do this only on Linux.
func dropBinaryPages() error { return nil }
