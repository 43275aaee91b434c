//go:build !linux

package vitals

import (
	"context"
	"errors"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// Reader works on Linux only.
type Reader struct{}

// New returns an error: only Linux has cgroups.
func New(Options) (*Reader, error) {
	return nil, errors.New("read this machine: only Linux has cgroups to read")
}

// Read returns an error.
func (*Reader) Read(context.Context, Depth) (*stats.Summary, error) {
	return &stats.Summary{}, errors.ErrUnsupported
}

// Layout returns an error.
func (*Reader) Layout(context.Context) (images, containers bool, err error) {
	return false, false, errors.ErrUnsupported
}

// Cgroups returns nothing.
func (*Reader) Cgroups() (mount string, pods metric.CgroupPath) { return "", "" }
