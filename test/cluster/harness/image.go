//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// LoadImage loads an image into the node's runtime from a tarball (of docker
// save, or an OCI layout). Pods that use it need imagePullPolicy Never or
// IfNotPresent.
func (c *Cluster) LoadImage(ctx context.Context, tarball string) error {
	f, err := os.Open(tarball)
	if err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	defer f.Close()
	if c.state.Kind == NodeV2 {
		args := []string{"/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "import", "-"}
		if err := c.Guest(ctx, GuestCommand{Args: args, Stdin: f}); err != nil {
			return fmt.Errorf("load image %s: %w", tarball, err)
		}
		return nil
	}
	node, ok := c.process(holder)
	if !ok {
		return fmt.Errorf("load image: cluster %s does not run", c.state.Name)
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(node.PID), "--mount", "--",
		c.Binary("ctr"), "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "-")
	cmd.Stdin = f
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("load image %s: %w", tarball, err)
	}
	return nil
}

// BuildImage writes an image of one static binary, with deploy/image. The image
// runs the binary as /NAME, where NAME is its file name, with these arguments
// unless a pod sets others. LoadImage loads the image.
func (c *Cluster) BuildImage(ctx context.Context, tarball, image, binary string, arguments ...string) error {
	args := []string{"run", ".", "--name", image, "--binary", binary, "--out", tarball}
	for _, a := range arguments {
		args = append(args, "--cmd", a)
	}
	if _, err := goCommand(ctx, filepath.Join(c.state.Source, "deploy", "image"), args...); err != nil {
		return fmt.Errorf("build image %s: %w", image, err)
	}
	return nil
}

// buildWorkload builds the program of the image that sandboxes and tests' pods
// run. The same source gives the same program.
func (c *Cluster) buildWorkload(ctx context.Context) (binary string, err error) {
	binary = filepath.Join(c.dir, "workload")
	if _, err := goCommand(ctx, c.state.Source, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "./test/cluster/workload"); err != nil {
		return "", fmt.Errorf("build workload: %w", err)
	}
	return binary, nil
}

// loadWorkload loads the image of that program.
func (c *Cluster) loadWorkload(ctx context.Context, binary string) error {
	tarball := filepath.Join(c.dir, "workload.tar")
	if err := c.BuildImage(ctx, tarball, WorkloadImage, binary, "pause"); err != nil {
		return err
	}
	return c.LoadImage(ctx, tarball)
}
