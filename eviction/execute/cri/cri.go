package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
)

// Options configures a Reclaimer.
type Options struct {
	// Socket is the path of the runtime's socket, with or without "unix://":
	// "/run/containerd/containerd.sock".
	Socket string
	// Ended reports whether a pod will run no container any more: its phase is Succeeded or Failed, or
	// the API server does not have it and it is not a static pod. The UID is the one that the kubelet
	// gave the runtime. If Ended is nil, no pod has ended.
	Ended func(types.UID) bool
	// MinImageAge is the time for which an image must have been known before it is removed. Default:
	// 2m, as the kubelet's imageMinimumGCAge.
	MinImageAge time.Duration
	// WatchPeriod is the time between two lists of images by Run. Default: 1m.
	WatchPeriod time.Duration
	// RequestTimeout bounds one request. Default: 30s.
	RequestTimeout time.Duration
}

// Reclaimer removes objects from a container runtime. Several goroutines may call its methods.
type Reclaimer struct {
	opts       Options
	conn       *grpc.ClientConn
	containers runtime.RuntimeServiceClient
	images     runtime.ImageServiceClient

	mu struct {
		sync.Mutex
		seen map[string]time.Time // the time at which each image was first seen, by ID
	}
}

var _ execute.Reclaimer = (*Reclaimer)(nil)

// maxAnswerBytes is the largest answer that is read. The kubelet has the same limit.
const maxAnswerBytes = 16 << 20

// New returns a Reclaimer. It connects to the runtime at its first request. The caller must close
// it.
func New(opts Options) (*Reclaimer, error) {
	socket := strings.TrimPrefix(opts.Socket, "unix://")
	if !path.IsAbs(socket) {
		return nil, fmt.Errorf("reach the container runtime: socket %q must be an absolute path, such as /run/containerd/containerd.sock", opts.Socket)
	}
	opts.MinImageAge = cmp.Or(opts.MinImageAge, 2*time.Minute)
	opts.WatchPeriod = cmp.Or(opts.WatchPeriod, time.Minute)
	opts.RequestTimeout = cmp.Or(opts.RequestTimeout, 30*time.Second)
	if opts.Ended == nil {
		opts.Ended = func(types.UID) bool { return false }
	}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswerBytes)))
	if err != nil {
		return nil, fmt.Errorf("reach the container runtime: %w", err)
	}
	r := &Reclaimer{opts: opts, conn: conn, containers: runtime.NewRuntimeServiceClient(conn), images: runtime.NewImageServiceClient(conn)}
	r.mu.seen = map[string]time.Time{}
	return r, nil
}

// Close closes the connection.
func (r *Reclaimer) Close() error {
	if err := r.conn.Close(); err != nil {
		return fmt.Errorf("close the connection to the container runtime: %w", err)
	}
	return nil
}

// Run lists the images every WatchPeriod until ctx ends. It ignores errors. Without Run no image
// becomes old enough to be removed.
func (r *Reclaimer) Run(ctx context.Context) error {
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		_, _ = r.listImages(ctx) // Reclaim reports the error of its own list
	}, r.opts.WatchPeriod)
	return nil
}

// Reclaim removes all objects of the collection that may be removed. If one cannot be removed, it
// continues with the others; the error joins the failures. Freed.Bytes includes only images,
// because runtimes do not report the size of an exited container.
func (r *Reclaimer) Reclaim(ctx context.Context, c eviction.Collection) (execute.Freed, error) {
	switch c {
	case eviction.UnusedContainers:
		return r.removeContainers(ctx)
	case eviction.UnusedImages:
		return r.removeImages(ctx)
	}
	return execute.Freed{}, fmt.Errorf("collect %q: the container runtime has no such thing", c)
}

// call makes one request with Options.RequestTimeout.
func call[Q, A any](ctx context.Context, r *Reclaimer, call func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.RequestTimeout)
	defer cancel()
	return call(ctx, q)
}

// maxFailures is how many errors of failed removals are kept. The others are counted.
const maxFailures = 10

// removeEach removes each object until ctx ends, also after a failure. remove returns what it freed, and name
// what an error calls the object.
func removeEach[T any](ctx context.Context, objects []T, kind string, name func(T) string, remove func(T) (bytes uint64, err error)) (freed execute.Freed, err error) {
	var failures []error
	more := 0
	for i, object := range objects {
		if ctx.Err() != nil {
			failures = append(failures, fmt.Errorf("leave %d %ss: %w", len(objects)-i, kind, context.Cause(ctx)))
			break
		}
		bytes, err := remove(object)
		switch {
		case err == nil:
			freed.Items++
			freed.Bytes += int64(min(bytes, math.MaxInt64-uint64(freed.Bytes)))
		case len(failures) < maxFailures:
			failures = append(failures, fmt.Errorf("remove %s %s: %w", kind, name(object), err))
		default:
			more++
		}
	}
	if more > 0 {
		failures = append(failures, fmt.Errorf("and %d more", more))
	}
	return freed, errors.Join(failures...)
}
