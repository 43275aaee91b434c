package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-metrics/weir/eviction"
	"github.com/weir-metrics/weir/eviction/execute"
)

// Options configure a Reclaimer.
type Options struct {
	// Socket is the path of the runtime's socket, with or without "unix://":
	// "/run/containerd/containerd.sock".
	Socket string
	// Ended says that a pod, by the UID the kubelet gave the runtime, will run nothing any more: its phase
	// is Succeeded or Failed, or it is gone from the API server and is no static pod. Nil says so of none.
	Ended func(types.UID) bool
	// MinImageAge is how long an image must have been seen before it goes. Default: 2m, as the
	// kubelet's imageMinimumGCAge.
	MinImageAge time.Duration
	// WatchPeriod is how often Run looks which images there are. Default: 1m.
	WatchPeriod time.Duration
	// RequestTimeout bounds one request. Default: 30s.
	RequestTimeout time.Duration
}

// Reclaimer asks a container runtime to remove things. Its methods may be called from several
// goroutines.
type Reclaimer struct {
	opts       Options
	conn       *grpc.ClientConn
	containers runtime.RuntimeServiceClient
	images     runtime.ImageServiceClient

	mu struct {
		sync.Mutex
		seen map[string]time.Time // when images were first seen, by ID
	}
}

var _ execute.Reclaimer = (*Reclaimer)(nil)

// maxAnswerBytes is the largest answer that is read, as the kubelet has it.
const maxAnswerBytes = 16 << 20

// New returns a Reclaimer, which connects when it is first used. Close ends it.
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

// Close ends the connection.
func (r *Reclaimer) Close() error {
	if err := r.conn.Close(); err != nil {
		return fmt.Errorf("close the connection to the container runtime: %w", err)
	}
	return nil
}

// Run watches which images there are, until ctx ends. A runtime that does not answer is asked
// again; while Run is not at work, no image grows old enough to be removed.
func (r *Reclaimer) Run(ctx context.Context) error {
	tick := time.NewTicker(r.opts.WatchPeriod)
	defer tick.Stop()
	for {
		_, _ = r.listImages(ctx) // Reclaim tells what keeps it from listing
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Reclaim removes all of the collection that may go. One that cannot be removed is no reason
// to leave out the next; the error tells of all. Bytes are those of images only: runtimes do not tell
// what an ended container takes.
func (r *Reclaimer) Reclaim(ctx context.Context, c eviction.Collection) (execute.Freed, error) {
	switch c {
	case eviction.UnusedContainers:
		return r.removeContainers(ctx)
	case eviction.UnusedImages:
		return r.removeImages(ctx)
	}
	return execute.Freed{}, fmt.Errorf("collect %q: the container runtime has no such thing", c)
}

// call makes one request, in the time it may take.
func call[Q, A any](ctx context.Context, r *Reclaimer, call func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.RequestTimeout)
	defer cancel()
	return call(ctx, q)
}

// failures are what could not be removed. Beyond the first few they are only counted.
type failures struct {
	errs []error
	more int
}

const maxFailures = 10

func (f *failures) add(err error) {
	if len(f.errs) < maxFailures {
		f.errs = append(f.errs, err)
		return
	}
	f.more++
}

func (f *failures) join() error {
	if f.more > 0 {
		f.errs = append(f.errs, fmt.Errorf("and %d more", f.more))
	}
	return errors.Join(f.errs...)
}
