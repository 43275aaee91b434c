//go:build !linux

package vitals

import (
	"context"
	"errors"

	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/metric"
)

// Reader reads this machine, which only Linux lets it.
type Reader struct{}

// New fails: only Linux has cgroups to read.
func New(Options) (*Reader, error) {
	return nil, errors.New("read this machine: only Linux has cgroups to read")
}

// Read has nothing to read.
func (*Reader) Read(context.Context, Depth) (*stats.Summary, error) {
	return &stats.Summary{}, errors.ErrUnsupported
}

// Layout has nothing to say.
func (*Reader) Layout(context.Context) (images, containers bool, err error) {
	return false, false, errors.ErrUnsupported
}

// Cgroups has none.
func (*Reader) Cgroups() (mount string, pods metric.CgroupPath) { return "", "" }
