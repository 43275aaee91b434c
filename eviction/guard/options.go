package guard

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
	"github.com/weir-metrics/weir/eviction/notify"
)

// Options of a Guard. Read, Settings and Executor are needed.
type Options struct {
	// Node is the node's name, for messages.
	Node string
	// Read reads the node afresh. A summary with an error lacks what the error tells of;
	// without a summary nothing can be decided.
	Read func(context.Context) (*stats.Summary, error)
	// Peek reads the node alone, without its pods, for what the kernel gives no notice of: disks
	// and process ids. It is asked every PeekEvery, beside Read; nil has them wait for the timer.
	Peek func(context.Context) (*stats.Summary, error)
	// Layout says whether images have a file system of their own, and containers one that is
	// not the images'. It is asked until it answers; nil stands for one file system.
	Layout func(context.Context) (images, containers bool, err error)
	// Pods are the node's; nil for none. Those that have ended are left out here.
	Pods func() ([]*corev1.Pod, error)
	// Refresh looks anew at what pods use of disks, in bounded time; nil if Read does.
	Refresh func(context.Context)
	// Settings are the thresholds and what belongs to them. They are not changed.
	Settings *eviction.Settings
	// Cgroups tells where the memory cgroups are, as of now: a node that starts has none for
	// pods yet. Without it, or a Mount, none is watched.
	Cgroups func() eviction.Cgroups
	// Executor carries decisions out.
	Executor *execute.Executor
	// Self is the UID of the guard's own pod, which is passed over; empty for none.
	Self types.UID
	// Publish is told of decisions, one call at a time, the newest only if it is slow; nil
	// for nobody.
	Publish func(context.Context, *eviction.Decision)
	// Notify are the notifier's settings.
	Notify notify.Options

	Registerer prometheus.Registerer // takes the metrics; nil for none
	Logger     *slog.Logger          // default: none
	Now        func() time.Time      // default: time.Now
}

func (o Options) withDefaults() Options {
	if o.Layout == nil {
		o.Layout = func(context.Context) (bool, bool, error) { return false, false, nil }
	}
	if o.Pods == nil {
		o.Pods = func() ([]*corev1.Pod, error) { return nil, nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o *Options) check() error {
	switch {
	case o.Read == nil:
		return errors.New("nothing reads the node: set Options.Read")
	case o.Settings == nil:
		return errors.New("there are no thresholds: set Options.Settings")
	case o.Executor == nil:
		return errors.New("nobody carries decisions out: set Options.Executor (one of mode observe touches nothing)")
	}
	return nil
}
