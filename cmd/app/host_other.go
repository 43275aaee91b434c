//go:build !linux

package app

import (
	"errors"

	"go.uber.org/zap"
)

var errOnlyLinux = errors.New("read this machine: only Linux has cgroups to read")

func openHost(*process, *hostPlan) error { return errOnlyLinux }

func openMachine(*hostPlan, nodePods, *zap.Logger) (*machine, error) { return nil, errOnlyLinux }

// dropBinaryPages does nothing: weir can do this only on Linux.
func dropBinaryPages() error { return nil }
