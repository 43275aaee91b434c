//go:build e2e

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-metrics/weir/test/cluster/harness"
)

// livePackages are packages whose tests read and change cgroups, and arguments
// for them: emulation is slow.
var livePackages = map[string][]string{
	"sources/host":         {"-slowness=20"},
	"sources/host/vitals":  {"-test.run=Live"},                   // the others read captures
	"sources/host/disk":    {"-test.skip=TestAgreesWithKubelet"}, // it starts a cluster
	"eviction/notify":      nil,
	"eviction/guard":       {"-most=150ms"},
	"eviction/execute/cri": {"-test.run=TestContainerd", "-kubeconfig=/root/kubeconfig"},
}

// TestPackages runs the tests of packages inside the virtual machine, as root
// and outside any pod.
func TestPackages(t *testing.T) {
	w := sharedCluster
	if !w.v2 {
		t.Skip("make e2e and make test run them on this machine: -node=v2")
	}
	for name, args := range livePackages {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(name, "/cri") {
				args = append(args, "-node="+w.Node())
				w.prepareContainerd(t)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			dir := filepath.Join(root, name)
			program := filepath.Join(t.TempDir(), "test")
			if out, err := exec.CommandContext(ctx, "go", "test", "-tags=e2e", "-ldflags=-s -w", "-c", "-o", program, dir).CombinedOutput(); err != nil {
				t.Fatalf("build: %v: %s", err, out)
			}
			guestDir := "/root/" + name
			w.inGuest(t, "mkdir -p "+guestDir)
			w.copyToGuest(t, program, guestDir+"/test")
			w.copyTestdata(t, dir, guestDir)
			var out bytes.Buffer
			err := w.Guest(ctx, harness.GuestCommand{
				Args: append([]string{"./test", "-test.v", "-test.timeout=9m"}, args...), Dir: guestDir, Stdout: &out,
			})
			for line := range strings.Lines(out.String()) {
				if err != nil || strings.Contains(line, "--- SKIP") || strings.HasPrefix(line, "PASS") {
					t.Log(strings.TrimSpace(line))
				}
			}
			if err != nil {
				t.Error(err)
			}
			if passed := strings.Count(out.String(), "--- PASS"); passed == 0 {
				t.Error("no test passed")
			}
		})
	}
}

// prepareContainerd gives the virtual machine the administrator's kubeconfig, and
// the images of the test of eviction/execute/cri.
func (w *testCluster) prepareContainerd(t *testing.T) {
	t.Helper()
	w.copyToGuest(t, w.Kubeconfig(), "/root/kubeconfig")
	for _, name := range []string{"weir.test/unused:latest", "weir.test/used:latest"} { // other arguments give another image
		tarball := filepath.Join(t.TempDir(), "image.tar")
		err := w.BuildImage(t.Context(), tarball, name, filepath.Join(w.Dir(), "workload"), "pause", name)
		if err == nil {
			err = w.LoadImage(t.Context(), tarball)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// copyTestdata copies a package's testdata, if it has one, into a folder of the
// virtual machine.
func (w *testCluster) copyTestdata(t *testing.T, from, to string) {
	t.Helper()
	data := os.DirFS(filepath.Join(from, "testdata"))
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	err := fs.WalkDir(data, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(data, name)
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Name: path.Join("testdata", name), Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = out.Write(content)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.Guest(t.Context(), harness.GuestCommand{Args: []string{"tar", "-C", to, "-xf", "-"}, Stdin: &b}); err != nil {
		t.Fatal(err)
	}
}
