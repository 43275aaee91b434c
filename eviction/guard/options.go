package guard

import (
	"cmp"
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

// NodeReader has the functions that read the node. Only Read is required.
type NodeReader struct {
	// Read reads the node now. If it returns a summary and an error, the error says what the summary
	// lacks. Without a summary there is no decision.
	Read func(context.Context) (*stats.Summary, error)
	// ReadMemory reads what Read does, but of the pods only their memory is of now. A crossing of memory
	// is decided with it first: it takes less time. It may be nil.
	ReadMemory func(context.Context) (*stats.Summary, error)
	// Poll reads the node without its pods. It is called every PollInterval for the disks and process
	// ids, because the kernel sends no notice of them. If it is nil, they are read only in rounds.
	Poll func(context.Context) (*stats.Summary, error)
	// MemoryLeft reads the figures of weir's own signals now. It may be nil, or return nil.
	MemoryLeft func() *eviction.MemoryLeft
	// WorkingSet reads the memory or swap in use that takes from a signal of memory, in bytes, with as
	// little work as possible: it is called up to a hundred times in a second. Only its changes count. If it
	// is nil, memory is read only in rounds.
	WorkingSet func(eviction.Signal) (int64, error)
	// Layout returns the fields of eviction.DiskLayout. It is called until it succeeds. If it is nil,
	// the node has one file system.
	Layout func(context.Context) (images, containers bool, err error)
	// Refresh reads the disk usage of the pods again, in bounded time. It is nil if Read does that.
	Refresh func(context.Context)
	// PodsCgroup returns the directory of the memory cgroup of all pods, for the descriptions of watches. It
	// may be nil.
	PodsCgroup func() string
}

// Options configures a Guard. Read, Settings and Executor are required.
type Options struct {
	// Node is the node's name, for messages.
	Node string
	NodeReader
	// Pods returns the node's pods, which may include pods that have ended. If it is nil, there are no
	// pods.
	Pods func() ([]*corev1.Pod, error)
	// Settings has the thresholds and their settings. The caller must not change it.
	Settings *eviction.Settings
	// Executor carries out decisions.
	Executor *execute.Executor
	// Self is the UID of weir's own pod, which is skipped; empty if there is none.
	Self types.UID
	// Publish is called with decisions, one at a time. If it is slow, only the newest decision is
	// published. It may be nil.
	Publish func(context.Context, *eviction.Decision)
	// Notify has the settings of the notifier.
	Notify notify.Options

	Registerer prometheus.Registerer // registers the metrics; nil means none
	Logger     *slog.Logger          // default: none
	Now        func() time.Time      // default: time.Now
}

func (o Options) withDefaults() Options {
	if o.Layout == nil {
		o.Layout = func(context.Context) (bool, bool, error) { return false, false, nil }
	}
	if o.MemoryLeft == nil {
		o.MemoryLeft = func() *eviction.MemoryLeft { return nil }
	}
	if o.Pods == nil {
		o.Pods = func() ([]*corev1.Pod, error) { return nil, nil }
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
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
