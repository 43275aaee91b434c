//go:build !linux

package app

import (
	"errors"

	"go.uber.org/zap"
)

func openMachine(*hostPlan, *podNames, *zap.Logger) (*machine, error) {
	return nil, errors.New("read this machine: only Linux has cgroups to read")
}
