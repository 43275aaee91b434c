package cri

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/weir-metrics/weir/eviction/execute"
)

func (r *Reclaimer) removeImages(ctx context.Context) (execute.Freed, error) {
	images, err := r.listImages(ctx)
	if err != nil {
		return execute.Freed{}, fmt.Errorf("list images: %w", err)
	}
	// The images in use are read after the list of images, so that a container created in between is
	// included.
	used, err := r.imagesInUse(ctx)
	if err != nil {
		return execute.Freed{}, fmt.Errorf("find images in use: %w", err)
	}
	return removeEach(ctx, r.removableImages(images, used, time.Now()), "image", imageName, func(image *runtime.Image) (bytes uint64, err error) {
		if _, err = call(ctx, r, r.images.RemoveImage, &runtime.RemoveImageRequest{Image: &runtime.ImageSpec{Image: image.GetId()}}); err == nil {
			r.forgetImage(image)
		}
		return image.GetSize(), err
	})
}

// listImages lists the images, and records when each was first seen.
func (r *Reclaimer) listImages(ctx context.Context) ([]*runtime.Image, error) {
	now := time.Now() // before the request, so that no image seems newer than it is
	all, err := call(ctx, r, r.images.ListImages, &runtime.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]time.Time, len(all.GetImages()))
	for _, image := range all.GetImages() {
		seen[image.GetId()] = now
		if first, ok := r.mu.seen[image.GetId()]; ok {
			seen[image.GetId()] = first
		}
	}
	r.mu.seen = seen
	return all.GetImages(), nil
}

// forgetImage makes an image count as new if it is pulled again.
func (r *Reclaimer) forgetImage(image *runtime.Image) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.seen, image.GetId())
}

// imagesInUse returns every name that containers, running or not, use for their images. Runtimes
// differ in which of the names is the ID.
func (r *Reclaimer) imagesInUse(ctx context.Context) (map[string]bool, error) {
	all, err := call(ctx, r, r.containers.ListContainers, &runtime.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	used := map[string]bool{}
	use := func(image *runtime.ImageSpec) {
		used[image.GetImage()], used[image.GetUserSpecifiedImage()] = true, true
	}
	for _, c := range all.GetContainers() {
		used[c.GetImageId()], used[c.GetImageRef()] = true, true
		use(c.GetImage())
		// Only the status of a container has the images that are mounted into it.
		s, err := call(ctx, r, r.containers.ContainerStatus, &runtime.ContainerStatusRequest{ContainerId: c.GetId()})
		if status.Code(err) == codes.NotFound {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask for container %s: %w", c.GetId(), err)
		}
		for _, m := range s.GetStatus().GetMounts() {
			use(m.GetImage())
		}
	}
	delete(used, "")
	return used, nil
}

// removableImages returns the images that no container uses and that are old enough.
func (r *Reclaimer) removableImages(images []*runtime.Image, used map[string]bool, now time.Time) []*runtime.Image {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtime.Image
	for _, image := range images {
		first, ok := r.mu.seen[image.GetId()]
		if image.GetPinned() || image.GetId() == "" || !ok || now.Sub(first) < r.opts.MinImageAge || isUsed(image, used) {
			continue
		}
		list = append(list, image)
	}
	return list
}

func isUsed(image *runtime.Image, used map[string]bool) bool {
	names := slices.Concat([]string{image.GetId()}, image.GetRepoTags(), image.GetRepoDigests())
	return slices.ContainsFunc(names, func(name string) bool { return used[name] })
}

// imageName returns the name of an image for people.
func imageName(image *runtime.Image) string {
	if tags := image.GetRepoTags(); len(tags) > 0 {
		return tags[0]
	}
	return image.GetId()
}
