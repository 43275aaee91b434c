//go:build !linux

package app

import (
	"errors"

	"go.uber.org/zap"
)

func openHost(hostPlan, *zap.Logger) (opened, error) {
	return nil, errors.New("read this machine: only Linux has cgroups to read")
}
