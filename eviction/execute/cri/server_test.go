package cri

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fake is a container runtime with the objects in its fields.
type fake struct {
	runtime.UnimplementedRuntimeServiceServer
	runtime.UnimplementedImageServiceServer

	mu         sync.Mutex
	containers []*runtime.Container
	ready      []string // the UIDs of pods with a ready sandbox
	images     []*runtime.Image
	mounts     map[string]string // images mounted into containers
	// fail has the error for a request about an object. hang has the objects for which no answer is
	// sent.
	fail map[string]error
	hang map[string]bool
	// removed is called with the ID of each removed object.
	removed func(string)
	stopped []string // the IDs of stopped containers
	listed  int      // how often images were listed
}

// serve starts f on a socket until the test ends.
func (f *fake) serve(t testing.TB) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "cri.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	runtime.RegisterRuntimeServiceServer(s, f)
	runtime.RegisterImageServiceServer(s, f)
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return socket
}

func (f *fake) answer(ctx context.Context, about string) error {
	f.mu.Lock()
	hang, err := f.hang[about], f.fail[about]
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fake) ListContainers(ctx context.Context, q *runtime.ListContainersRequest) (*runtime.ListContainersResponse, error) {
	if err := f.answer(ctx, "containers"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []*runtime.Container
	for _, c := range f.containers {
		if want := q.GetFilter().GetState(); want != nil && c.State != want.State {
			continue
		}
		if uid, ok := q.GetFilter().GetLabelSelector()[labelUID]; !ok || uid == c.Labels[labelUID] {
			list = append(list, c)
		}
	}
	return &runtime.ListContainersResponse{Containers: list}, nil
}

func (f *fake) ListPodSandbox(ctx context.Context, q *runtime.ListPodSandboxRequest) (*runtime.ListPodSandboxResponse, error) {
	if err := f.answer(ctx, "sandboxes"); err != nil {
		return nil, err
	}
	if want := q.GetFilter().GetState(); want == nil || want.State != runtime.PodSandboxState_SANDBOX_READY {
		return nil, status.Error(codes.InvalidArgument, "asked for others than those that are ready")
	}
	var list []*runtime.PodSandbox
	for _, uid := range f.ready {
		list = append(list, &runtime.PodSandbox{Metadata: &runtime.PodSandboxMetadata{Uid: uid}})
	}
	return &runtime.ListPodSandboxResponse{Items: list}, nil
}

func (f *fake) ContainerStatus(ctx context.Context, q *runtime.ContainerStatusRequest) (*runtime.ContainerStatusResponse, error) {
	if err := f.answer(ctx, "status "+q.ContainerId); err != nil {
		return nil, err
	}
	mounts := []*runtime.Mount{{HostPath: "/etc/hosts"}}
	if image, ok := f.mounts[q.ContainerId]; ok {
		mounts = append(mounts, &runtime.Mount{Image: &runtime.ImageSpec{Image: image}})
	}
	return &runtime.ContainerStatusResponse{Status: &runtime.ContainerStatus{Mounts: mounts}}, nil
}

func (f *fake) RemoveContainer(ctx context.Context, q *runtime.RemoveContainerRequest) (*runtime.RemoveContainerResponse, error) {
	if err := f.answer(ctx, q.ContainerId); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.containers = slices.DeleteFunc(f.containers, func(c *runtime.Container) bool { return c.Id == q.ContainerId })
	f.reportContainer(q.ContainerId)
	return &runtime.RemoveContainerResponse{}, nil
}

func (f *fake) StopContainer(ctx context.Context, q *runtime.StopContainerRequest) (*runtime.StopContainerResponse, error) {
	if err := f.answer(ctx, q.ContainerId); err != nil {
		return nil, err
	}
	if q.Timeout != 0 {
		return nil, status.Error(codes.InvalidArgument, "asked to wait before SIGKILL")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = append(f.stopped, q.ContainerId)
	return &runtime.StopContainerResponse{}, nil
}

func (f *fake) ListImages(ctx context.Context, _ *runtime.ListImagesRequest) (*runtime.ListImagesResponse, error) {
	f.mu.Lock()
	f.listed++
	f.mu.Unlock()
	if err := f.answer(ctx, "images"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &runtime.ListImagesResponse{Images: slices.Clone(f.images)}, nil
}

func (f *fake) RemoveImage(ctx context.Context, q *runtime.RemoveImageRequest) (*runtime.RemoveImageResponse, error) {
	if err := f.answer(ctx, q.Image.Image); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.images = slices.DeleteFunc(f.images, func(i *runtime.Image) bool { return i.Id == q.Image.Image })
	f.reportContainer(q.Image.Image)
	return &runtime.RemoveImageResponse{}, nil
}

func (f *fake) reportContainer(id string) {
	if f.removed != nil {
		f.removed(id)
	}
}

// left returns the IDs of the remaining objects.
func (f *fake) left() (containers, images []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.containers {
		containers = append(containers, c.Id)
	}
	for _, i := range f.images {
		images = append(images, i.Id)
	}
	return containers, images
}

// container returns a container of a pod with the kubelet's labels.
func container(id, pod, name string, created int64, state runtime.ContainerState) *runtime.Container {
	return &runtime.Container{
		Id: id, CreatedAt: created, State: state,
		Labels: map[string]string{labelUID: pod, labelName: name},
	}
}

const (
	createdState = runtime.ContainerState_CONTAINER_CREATED
	running      = runtime.ContainerState_CONTAINER_RUNNING
	exited       = runtime.ContainerState_CONTAINER_EXITED
	unknownState = runtime.ContainerState_CONTAINER_UNKNOWN
)

var errBusy = status.Error(codes.FailedPrecondition, "busy")
