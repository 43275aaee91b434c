//go:build linux

package harness

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The scripts that make a disk, and the files over Debian's own.
//
//go:embed vm
var vmFiles embed.FS

// DebianVariable is the environment variable that selects the Debian of a virtual
// machine: bookworm, with kernel 6.1, trixie, with 6.12, or forky, the next release,
// with the newest that Debian has. Default: bookworm.
const DebianVariable = "WEIR_CLUSTER_DEBIAN"

func selectDebian(suite string) (string, error) {
	switch suite {
	case "":
		return "bookworm", nil
	case "bookworm", "trixie", "forky":
		return suite, nil
	}
	return "", fmt.Errorf("%s=%s: want bookworm, trixie or forky", DebianVariable, suite)
}

// debianPackages are what a virtual machine's disk has. The third line is what
// test/crossing compares weir with, the fourth other runtimes, for the test of
// sources/host; these do not start by themselves. The last line is the kernel, and
// what makes its initrd.
var debianPackages = []string{
	"systemd", "systemd-sysv", "dbus", "udev", "mount", "util-linux", "procps", "iproute2", "ca-certificates",
	"runc", "containernetworking-plugins", "apparmor",
	"systemd-oomd", "earlyoom",
	"docker.io", "conmon",
	"linux-image-cloud-amd64", "kmod", "busybox-static", "cpio",
}

// An image is what a virtual machine starts from, in two folders of the cache.
// debian has the distribution, of the release suite; snapshot a disk with
// everything that all clusters have in common, and the memory of a machine that
// has booted from it.
type image struct{ suite, debian, snapshot string }

func (i image) kernel() string { return filepath.Join(i.debian, "vmlinuz") }
func (i image) initrd() string { return filepath.Join(i.debian, "initrd") }
func (i image) root() string   { return filepath.Join(i.debian, "root.tar") }
func (i image) disk() string   { return filepath.Join(i.snapshot, "disk") }
func (i image) memory() string { return filepath.Join(i.snapshot, "memory") }
func (i image) state() string  { return filepath.Join(i.snapshot, "state") }

// keptImages is how many images of each kind the cache keeps: those of the
// source trees that are in use. One has about 2 GB.
const keptImages = 3

// findImage returns the folders of the image that this source tree needs,
// whether they exist or not. Their names are hashes of everything that they are
// made from: the names of packages, the scripts, the programs, and QEMU, which
// reads only its own snapshots. Packages have the versions that Debian had when
// the folder was made (its file versions). To have newer ones, remove it.
func (c *Cluster) findImage(ctx context.Context, workload string) (image, error) {
	cache, err := cacheDir()
	if err != nil {
		return image{}, err
	}
	suite, err := selectDebian(os.Getenv(DebianVariable))
	if err != nil {
		return image{}, err
	}
	qemu, err := output(exec.CommandContext(ctx, emulator, "--version"))
	if err != nil {
		return image{}, fmt.Errorf("ask for QEMU's version: %w", err)
	}
	debian := sha256.New()
	fmt.Fprintf(debian, "%s %q\n", suite, debianPackages)
	if err := hashFiles(debian, "vm/debian.sh", "vm/initrd.sh"); err != nil {
		return image{}, err
	}
	i := image{suite: suite, debian: filepath.Join(cache, "debian-"+hex.EncodeToString(debian.Sum(nil)[:8]))}

	snapshot := sha256.New()
	fmt.Fprintf(snapshot, "%x %q %q\n", debian.Sum(nil), qemu, machineArgs(image{}, "", ""))
	for _, name := range machinePrograms {
		fmt.Fprintf(snapshot, "%q\n", c.Binary(name)) // the folder's name is a hash
	}
	if err := hashFiles(snapshot, "vm/disk.sh", "vm/root"); err != nil {
		return image{}, err
	}
	guest, err := c.buildGuest(ctx)
	if err != nil {
		return image{}, err
	}
	for _, path := range []string{guest, workload} {
		b, err := os.ReadFile(path)
		if err != nil {
			return image{}, err
		}
		fmt.Fprintf(snapshot, "%x\n", sha256.Sum256(b))
	}
	i.snapshot = filepath.Join(cache, "machine-"+hex.EncodeToString(snapshot.Sum(nil)[:8]))
	return i, nil
}

// machinePrograms are the built programs that a virtual machine has.
var machinePrograms = []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr"}

func hashFiles(w io.Writer, roots ...string) error {
	for _, root := range roots {
		if err := fs.WalkDir(vmFiles, root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := vmFiles.ReadFile(path)
			fmt.Fprintf(w, "%q %d\n%s", path, len(b), b)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// buildGuest builds the machine's end of the command channel.
func (c *Cluster) buildGuest(ctx context.Context) (path string, err error) {
	path = filepath.Join(c.dir, "guest")
	if _, err := goCommand(ctx, c.state.Source, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./test/cluster/guest"); err != nil {
		return "", fmt.Errorf("build the command channel: %w", err)
	}
	return path, nil
}

// buildImage makes the folders of an image that do not exist. The machine that
// boots for the snapshot belongs to this cluster until it is saved, so it ends
// with the cluster.
func (c *Cluster) buildImage(ctx context.Context, i image, workload string) error {
	if err := makeFolder(ctx, i.debian, c.progress, func(dir string) error {
		c.progress.logf("downloading Debian (minutes, once)")
		return c.progress.step("Debian "+i.suite, func() error { return c.downloadDebian(ctx, i.suite, dir) })
	}); err != nil {
		return err
	}
	return makeFolder(ctx, i.snapshot, c.progress, func(dir string) error {
		aside := image{i.suite, i.debian, dir}
		if err := c.progress.step("virtual machine's disk", func() error { return c.writeDisk(ctx, aside) }); err != nil {
			return err
		}
		return c.progress.step("virtual machine's snapshot", func() error { return c.saveSnapshot(ctx, aside, workload) })
	})
}

// makeFolder calls f to fill a folder of the cache, unless the folder exists,
// and removes the oldest ones of its kind. If several processes call it at the
// same time, one fills the folder and the others wait.
func makeFolder(ctx context.Context, dir string, p *progress, f func(dir string) error) error {
	unlock, err := lockFile(ctx, dir+".lock", func() { p.logf("waiting for another process to make %s", filepath.Base(dir)) })
	if err != nil {
		return err
	}
	defer unlock()
	if exists(dir) {
		now := time.Now()
		return os.Chtimes(dir, now, now)
	}
	aside := dir + ".partial"
	if err := errors.Join(os.RemoveAll(aside), os.MkdirAll(aside, 0o755)); err != nil {
		return err
	}
	if err := f(aside); err != nil {
		return errors.Join(err, os.RemoveAll(aside))
	}
	if err := os.Rename(aside, dir); err != nil {
		return err
	}
	return removeOld(dir)
}

// removeOld removes the folders of dir's kind that were not used lately. A
// running machine keeps its files open.
func removeOld(dir string) error {
	kind, _, _ := strings.Cut(filepath.Base(dir), "-")
	all, err := filepath.Glob(filepath.Join(filepath.Dir(dir), kind+"-????????????????"))
	if err != nil {
		return err
	}
	used := func(dir string) time.Time {
		info, err := os.Stat(dir)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(all, func(a, b string) int { return used(b).Compare(used(a)) })
	for _, old := range all[min(len(all), keptImages):] {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	return nil
}

// script writes one of the scripts to the cluster's folder.
func (c *Cluster) script(name string) (string, error) {
	b, err := vmFiles.ReadFile("vm/" + name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, name)
	return path, os.WriteFile(path, b, 0o700)
}

func (c *Cluster) downloadDebian(ctx context.Context, suite, dir string) error {
	debian, err := c.script("debian.sh")
	if err != nil {
		return err
	}
	initrd, err := c.script("initrd.sh")
	if err != nil {
		return err
	}
	// It mounts file systems in the folder, which must end with it.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "--",
		"nice", "sh", debian, initrd, suite, strings.Join(debianPackages, ","), dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	_, err = output(cmd)
	return err
}

func (c *Cluster) writeDisk(ctx context.Context, i image) error {
	script, err := c.script("disk.sh")
	if err != nil {
		return err
	}
	files := filepath.Join(i.snapshot, "files")
	root, err := fs.Sub(vmFiles, "vm/root")
	if err != nil {
		return err
	}
	if err := os.CopyFS(files, root); err != nil {
		return err
	}
	bin := filepath.Join(files, "usr", "local", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	programs := []string{filepath.Join(c.dir, "guest")}
	for _, name := range machinePrograms {
		programs = append(programs, c.Binary(name))
	}
	if _, err := output(exec.CommandContext(ctx, "cp", append(programs, bin)...)); err != nil {
		return err
	}
	_, err = output(exec.CommandContext(ctx, "sh", script, i.root(), files, i.disk()))
	return errors.Join(err, os.RemoveAll(files))
}

// saveSnapshot boots a machine and saves it when its runtime has the workload's
// image.
func (c *Cluster) saveSnapshot(ctx context.Context, i image, workload string) error {
	k := component{name: machineProcess, path: emulator, args: machineArgs(i, "share=on,mem-path="+i.memory(), "file="+i.disk())}
	if err := c.progress.step("virtual machine booted", func() error {
		return c.runMachine(ctx, k, func(*qmp) error { return nil })
	}); err != nil {
		return err
	}
	// The kubelet's program is read, so that the snapshot has it in memory.
	const settle = `until systemctl is-active --quiet containerd; do sleep 0.2; done; kubelet --version; sync`
	if _, err := c.GuestOutput(ctx, "sh", "-c", settle); err != nil {
		return err
	}
	if err := c.loadWorkload(ctx, workload); err != nil {
		return err
	}
	socket, err := c.NodePath(monitorSocket)
	if err != nil {
		return err
	}
	q, err := openMonitor(ctx, socket)
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.save(ctx, i.state()); err != nil {
		return err
	}
	return c.StopProcess(ctx, machineProcess)
}
