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

// Options of a Guard. Read, Settings and Executor are required.
type Options struct {
	// Node is the node's name, for messages.
	Node string
	// Read reads the node now. If it returns a summary and an error, the summary lacks what the
	// error says. Without a summary nothing is decided.
	Read func(context.Context) (*stats.Summary, error)
	// Poll reads the node without its pods. It is called every PollInterval for the disks and
	// process ids, since the kernel gives no notice of them. With nil they are only read in rounds.
	Poll func(context.Context) (*stats.Summary, error)
	// Layout returns eviction.DiskLayout's fields. It is called until it succeeds; nil means one file
	// system.
	Layout func(context.Context) (images, containers bool, err error)
	// Pods returns the node's pods, which may include ended ones; nil for none.
	Pods func() ([]*corev1.Pod, error)
	// Refresh reads the pods' disk usage again, in bounded time; nil if Read does.
	Refresh func(context.Context)
	// Settings are the thresholds and their settings. They must not change.
	Settings *eviction.Settings
	// Cgroups returns where the memory cgroups are now: a starting node has no cgroup of pods
	// yet. Without it, or without a Mount, no cgroup is watched.
	Cgroups func() eviction.Cgroups
	// Executor carries out decisions.
	Executor *execute.Executor
	// Self is the UID of weir's own pod, which is skipped; empty for none.
	Self types.UID
	// Publish is called with decisions, one call at a time. If it is slow, only the newest
	// decision is published. It may be nil.
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
		return errors.New("nothing carries out decisions: set Options.Executor (one of mode observe touches nothing)")
	}
	return nil
}
