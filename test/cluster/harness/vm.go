//go:build linux

package harness

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A NodeKind says what the node of a cluster is.
type NodeKind string

const (
	// NodeProcesses is a node whose kubelet and runtime are processes of this machine,
	// with its kernel and its version of cgroups.
	NodeProcesses NodeKind = ""
	// NodeV2 is a virtual machine with Debian's kernel, systemd and cgroup version 2,
	// in software emulation.
	NodeV2 NodeKind = "v2"
)

// machineProcess is the name of the virtual machine's process.
const machineProcess = "machine"

const emulator = "qemu-system-x86_64"

// monitorSocket is in the cluster's own /run.
const monitorSocket = "/run/machine.sock"

// machineArgs are QEMU's arguments for a virtual machine with this disk and
// memory. A snapshot can only be loaded with the arguments that it was saved
// with.
func machineArgs(i image, memory string, disk string) []string {
	return []string{
		"-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", "2", "-m", machineMemory,
		"-object", "memory-backend-file,id=ram,size=" + machineMemory + "," + memory,
		"-machine", "pc,memory-backend=ram",
		"-kernel", i.kernel(), "-initrd", i.initrd(), "-append", kernelArgs,
		"-drive", disk + ",format=raw,if=virtio,cache=unsafe",
		"-netdev", "tap,id=net,ifname=" + tapDevice + ",script=no,downscript=no", "-device", "virtio-net-pci,netdev=net",
		"-device", "virtio-rng-pci",
		"-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot",
		"-qmp", "unix:" + monitorSocket + ",server,nowait",
	}
}

const (
	machineMemory = "3G"
	tapDevice     = "machine"
	// The mitigations and the audit cost much in emulation. PSI is off by default in
	// some kernels.
	kernelArgs = "console=ttyS0 panic=-1 psi=1 mitigations=off audit=0 net.ifnames=0 systemd.show_status=1"
)

// startMachine starts the virtual machine from its snapshot, which it makes if
// the cache has none, and writes this cluster's files into it.
func (c *Cluster) startMachine(ctx context.Context) error {
	workload, err := c.buildWorkload(ctx)
	if err != nil {
		return err
	}
	i, err := c.findImage(ctx, workload)
	if err != nil {
		return err
	}
	if err := c.connectMachine(ctx); err != nil {
		return err
	}
	if err := c.buildImage(ctx, i, workload); err != nil {
		return fmt.Errorf("make the virtual machine's image: %w", err)
	}
	if err := c.progress.step("virtual machine", func() error {
		k := component{
			name: machineProcess, path: emulator,
			args: append(machineArgs(i, "share=off,mem-path="+i.memory(), "snapshot=on,file="+i.disk()), "-incoming", "defer"),
		}
		return c.runMachine(ctx, k, func(q *qmp) error { return q.load(ctx, i.state()) })
	}); err != nil {
		return err
	}
	return c.progress.step("virtual machine configured", func() error { return c.configureMachine(ctx) })
}

// runMachine starts QEMU, calls f with its monitor, and wakes the machine.
func (c *Cluster) runMachine(ctx context.Context, k component, f func(*qmp) error) error {
	k.address = c.state.Network.Machine.String()
	k.health = c.kubeletURL()
	node, ok := c.process(holder)
	if !ok || !node.Alive() {
		return fmt.Errorf("start %s: the process that holds the cluster's namespaces has ended", k.name)
	}
	p, err := c.launch(ctx, k, enter(node))
	if err != nil {
		return err
	}
	// If QEMU refuses its arguments, it ends and there is never a socket.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if poll(ctx, 100*time.Millisecond, func() (bool, error) { return !p.Alive(), nil }) == nil {
			cancel(errors.New("it ended"))
		}
	}()
	socket, err := c.NodePath(monitorSocket)
	if err != nil {
		return err
	}
	err = func() error {
		q, err := openMonitor(ctx, socket)
		if err != nil {
			return err
		}
		defer q.close()
		if err := f(q); err != nil {
			return err
		}
		return c.wake(ctx)
	}()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("start %s: %w\n%s", k.name, err, c.tail(k.name))
	}
	return nil
}

// connectMachine makes the virtual machine's link, inside the cluster's network
// namespace, and this machine's route to it.
func (c *Cluster) connectMachine(ctx context.Context) error {
	node, ok := c.process(holder)
	if !ok {
		return errors.New("connect the virtual machine: the cluster does not run")
	}
	n := c.state.Network
	inside := fmt.Sprintf(`tuntap add dev %[1]s mode tap
address add %[2]s dev %[1]s
address add %[3]s/24 dev %[1]s
link set %[1]s up
route add %[4]s via %[5]s dev %[1]s
`, tapDevice, gatewayPrefix, n.Gateway, n.Pods, n.Machine)
	if err := ipBatch(ctx, inside, enter(node)...); err != nil {
		return fmt.Errorf("connect the virtual machine: %w", err)
	}
	outside := fmt.Sprintf("route add %s/32 via %s dev %s\n", n.Machine, n.Node, c.state.Interface)
	if err := ipBatch(ctx, outside); err != nil {
		return fmt.Errorf("connect this machine to the virtual machine: %w", err)
	}
	return nil
}

// configureMachine gives the machine its addresses, and this cluster's
// certificates and configuration.
func (c *Cluster) configureMachine(ctx context.Context) error {
	n, p := c.state.Network, c.pki()
	files := map[string][]byte{
		"etc/hostname":               []byte(c.state.Node + "\n"),
		"etc/hosts":                  fmt.Appendf(nil, "127.0.0.1 localhost\n%s %s\n", n.Machine, c.state.Node),
		"etc/resolv.conf":            nil,
		"etc/kubernetes/kubelet.env": fmt.Appendf(nil, "ARGS=%s\n", strings.Join(c.kubeletArgs(), " ")),
	}
	for name, path := range map[string]string{
		"ca.crt": p.path("ca.crt"), "kubelet.crt": p.path("kubelet.crt"), "kubelet.key": p.path("kubelet.key"),
		"kubelet.kubeconfig": filepath.Join(c.dir, "kubelet.kubeconfig"),
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("configure the virtual machine: %w", err)
		}
		files["etc/kubernetes/"+name] = b
	}
	var err error
	if files["etc/kubernetes/kubelet.yaml"], err = json.MarshalIndent(c.machineKubeletConfig(), "", "  "); err != nil {
		return fmt.Errorf("configure the virtual machine: %w", err)
	}
	if files["etc/cni/net.d/10-weir.conflist"], err = json.MarshalIndent(c.networkConfig(), "", "  "); err != nil {
		return fmt.Errorf("configure the virtual machine: %w", err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := errors.Join(
			w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}),
			func() error { _, err := w.Write(files[name]); return err }(),
		); err != nil {
			return fmt.Errorf("configure the virtual machine: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("configure the virtual machine: %w", err)
	}
	const script = `tar -C / -xf - && mkdir -p /etc/kubernetes/manifests && chmod 644 /etc/hosts /etc/hostname /etc/resolv.conf &&
hostname "$1" && ip address add "$2/24" dev eth0 && ip route add default via "$3" src "$2"`
	if err := c.Guest(ctx, GuestCommand{
		Args: []string{"sh", "-c", script, "sh", c.state.Node, n.Machine.String(), n.Gateway.String()}, Stdin: &b,
	}); err != nil {
		return fmt.Errorf("configure the virtual machine: %w", err)
	}
	return nil
}

// machineKubeletConfig is the kubelet's configuration in a virtual machine.
func (c *Cluster) machineKubeletConfig() map[string]any {
	config := c.kubeletConfig()
	for _, own := range []string{"cgroupRoot", "kubeletCgroups", "failCgroupV1"} { // the machine is the node's alone
		delete(config, own)
	}
	maps.Copy(config, map[string]any{
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": "/etc/kubernetes/ca.crt"},
		},
		"tlsCertFile":       "/etc/kubernetes/kubelet.crt",
		"tlsPrivateKeyFile": "/etc/kubernetes/kubelet.key",
		"resolvConf":        "/etc/resolv.conf",
		"staticPodPath":     "/etc/kubernetes/manifests",
		"cgroupDriver":      "systemd",
	})
	maps.Copy(config, c.options.KubeletConfig)
	return config
}

// kubeletArgs are the kubelet's arguments in a virtual machine, beside those of
// its unit.
func (c *Cluster) kubeletArgs() []string {
	return append([]string{"--hostname-override=" + c.state.Node, "--node-ip=" + c.state.Network.Machine.String()}, c.options.KubeletArgs...)
}

// kubeletURL is the kubelet's health in a virtual machine.
func (c *Cluster) kubeletURL() string {
	return fmt.Sprintf("http://%s:10248/healthz", c.state.Network.Machine)
}

// saveJournal writes the log of a unit of the virtual machine to the cluster's
// logs.
func (c *Cluster) saveJournal(ctx context.Context, unit string) error {
	out, err := c.GuestOutput(ctx, "journalctl", "--no-pager", "--output=cat", "--lines=2000", "--unit="+unit)
	if err != nil {
		return err
	}
	return os.WriteFile(c.Log(unit), []byte(out), 0o600)
}

// machineTools are the programs that a virtual machine needs of this machine,
// and Debian's packages of them.
var machineTools = [][2]string{
	{emulator, "qemu-system-x86"}, {"mmdebstrap", "mmdebstrap"}, {"mkfs.ext4", "e2fsprogs"},
}

// findMachineTools finds programs in the folders of path, and the device of
// taps. Its error names the Debian packages that are missing.
func findMachineTools(path []string, tun string) error {
	var missing, packages []string
	for _, tool := range machineTools {
		if !slices.ContainsFunc(path, func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, tool[0]))
			return err == nil
		}) {
			missing, packages = append(missing, tool[0]), append(packages, tool[1])
		}
	}
	if !exists(tun) {
		return fmt.Errorf("%w: %s: the kernel has no tap devices", ErrHostTools, tun)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s: apt-get install %s", ErrHostTools, strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	return nil
}
