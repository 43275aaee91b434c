//go:build linux

// Package harness builds and runs a real Kubernetes cluster of one node on this
// machine, for tests: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, kube-proxy, containerd and kubelet, built from the Go modules
// beside this package. It needs root, Linux and three Debian packages. It needs
// no registry and no Docker. The node is processes of this machine or, if a
// test asks for it ([Options.Node]), a virtual machine.
//
// # How a cluster is isolated
//
// Each cluster has its own network namespace and mount namespace, which one
// process keeps open, and a cgroup named after the cluster. So every cluster
// uses the usual ports and folders (6443, /var/lib/kubelet), and many clusters
// can run at the same time. When its last process has ended, its mounts,
// interfaces, routes and iptables rules are gone too. One pair of virtual
// interfaces connects this machine to the cluster. Over it, this machine
// reaches the API server, pods and Services by their addresses.
//
// # Files
//
// A cluster's folder contains state.json (what runs: see [ClusterRecord]), logs/,
// audit/ (who changed what: see [Cluster.Audit]), pki/, kubeconfig and the
// node's own folders. Programs are in a cache outside this folder, by the hash
// of what they are built from. [Cluster.Down] removes the folder.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options select a cluster and say how it differs from the default. The zero
// value is a cluster named "weir".
type Options struct {
	// Name is the name of the cluster, its cgroup and its node: lower-case letters,
	// digits and dashes, at most 40 characters. Default "weir".
	Name string
	// Dir is the folder that contains the clusters' folders. Default:
	// weir-cluster/clusters in the user's cache folder.
	Dir string
	// Node is what the node is. Default: processes of this machine.
	Node NodeKind
	// Progress receives a line for each completed step. Default: none.
	Progress io.Writer

	// These arguments come after the harness's own, so they take precedence.
	APIServerArgs, ControllerManagerArgs, SchedulerArgs, ProxyArgs, KubeletArgs []string
	// KubeletConfig replaces top-level fields of the kubelet's configuration.
	KubeletConfig map[string]any
	// NodeDisk is a separate disk for the kubelet and the runtime. Default: the
	// disk of Dir, which is this machine's.
	NodeDisk NodeDisk
	// ControlPlane starts only etcd and kube-apiserver. There is no node, no
	// scheduler and no controller, and pods need no service account. Use it for
	// tests that write thousands of nodes and pods themselves.
	ControlPlane bool
}

// Errors that a caller can handle.
var (
	// ErrRunning: the cluster that Start should start already runs. Use Open.
	ErrRunning = errors.New("cluster is running")
	// ErrNotFound: the folder has no cluster of that name.
	ErrNotFound = errors.New("no such cluster")
	// ErrHostTools: this machine lacks a program that Debian has as a package.
	ErrHostTools = errors.New("host tools missing")
)

// A Cluster is a cluster that was started. Several goroutines may call its
// methods at the same time.
type Cluster struct {
	mu       sync.Mutex // guards state, after Start
	state    ClusterRecord
	dir      string
	progress *progress
	options  Options
}

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "weir"
	}
	if !validName.MatchString(o.Name) || len(o.Name) > 40 {
		return o, fmt.Errorf("cluster name %q: use at most 40 lower-case letters, digits and dashes", o.Name)
	}
	if o.Dir == "" {
		cache, err := cacheDir()
		if err != nil {
			return o, err
		}
		o.Dir = filepath.Join(cache, "clusters")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("find folder: %w", err)
	}
	o.Dir = dir
	if within(dir, "/run") || within(dir, "/proc") || within(dir, "/sys") {
		return o, fmt.Errorf("folder %s: a cluster has its own /run, /proc and /sys; choose a folder elsewhere with --dir", dir)
	}
	if o.Node != NodeProcesses && o.Node != NodeV2 {
		return o, fmt.Errorf("node %q: there is only %q", o.Node, NodeV2)
	}
	if o.Node != NodeProcesses && (o.ControlPlane || o.NodeDisk != (NodeDisk{})) {
		return o, fmt.Errorf("node %q: it is a machine with its own disk", o.Node)
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o, nil
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// Start builds the programs that are missing, starts a cluster and returns when
// its node is ready, or its API server if there is no node. The cluster's
// processes do not end with this process; use [Cluster.Down]. If a component
// fails, the error contains the last lines of its log, and Start stops
// everything. The logs remain until the next Start with that name.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("start a cluster: namespaces, cgroups and mounts need root; run this as root")
	}
	path := append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin")
	tools, err := findHostTools(path, []string{"/usr/lib/cni", "/opt/cni/bin"}, o.ControlPlane)
	if err == nil && o.Node == NodeV2 {
		err = findMachineTools(path, "/dev/net/tun")
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: filepath.Join(o.Dir, o.Name), progress: newProgress(o.Progress), options: o}
	unlock, err := lockFile(ctx, c.dir+".lock", nil)
	if err != nil {
		return nil, err
	}
	defer unlock()

	if old, err := readState(c.dir); err == nil {
		if old.Alive() {
			return nil, fmt.Errorf("%w: %s in %s", ErrRunning, o.Name, c.dir)
		}
		c.state = old
		if err := c.clear(ctx); err != nil { // removes what a crash or a reboot left
			return nil, fmt.Errorf("clear what is left of cluster %s: %w", o.Name, err)
		}
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return nil, fmt.Errorf("clear folder: %w", err)
	}
	source, err := sourceRoot(ctx)
	if err != nil {
		return nil, err
	}
	programs, err := build(ctx, source, c.progress)
	if err != nil {
		return nil, err
	}
	c.state = newState(o, source, programs, time.Now())
	if err := c.claim(); err != nil {
		return nil, err
	}
	if err := c.start(ctx, tools); err != nil {
		// The caller's context may have ended, but clear must run in any case.
		clearCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if clearErr := c.clear(clearCtx); clearErr != nil {
			err = fmt.Errorf("%w\nand then: clear: %w", err, clearErr)
		} else {
			os.Remove(filepath.Join(c.dir, stateFile)) //nolint:errcheck // the first error is returned
		}
		return nil, fmt.Errorf("start cluster %s: %w\nlogs: %s", o.Name, err, filepath.Join(c.dir, "logs"))
	}
	return c, nil
}

// Open returns a cluster that [Start] started in this or another process. The
// cluster may have stopped: see [Cluster.Running]. Open uses only Name, Dir and
// Progress of the options.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: filepath.Join(o.Dir, o.Name), progress: newProgress(o.Progress), options: o}
	if c.state, err = readState(c.dir); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s in %s", ErrNotFound, o.Name, o.Dir)
		}
		return nil, err
	}
	return c, nil
}

// claim takes the cluster's folder and cgroup. From then on, everything in the
// cgroup belongs to the cluster and ends with it.
func (c *Cluster) claim() error {
	running, err := cgroup(c.state.Cgroup).processes()
	if err != nil {
		return err
	}
	if len(running) > 0 {
		return fmt.Errorf("cgroup %s holds processes %v already: is a cluster of this name running in another folder? End it, or choose another --name",
			c.state.Cgroup, running)
	}
	for _, d := range []string{"logs", "pki"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	return c.state.write(c.dir)
}

// Down ends every process of the cluster and removes everything that the
// cluster created.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := lockFile(ctx, c.dir+".lock", nil)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.clear(ctx); err != nil {
		return fmt.Errorf("end cluster %s: %w", c.state.Name, err)
	}
	if err := removeAll(ctx, c.dir); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	if err := os.Remove(c.dir + ".lock"); err != nil {
		return fmt.Errorf("remove lock: %w", err)
	}
	return nil
}

// clear ends the processes and removes everything that is not a file. It may be
// called at any stage of a start, and more than once.
func (c *Cluster) clear(ctx context.Context) error {
	group := cgroup(c.state.Cgroup)
	return errors.Join(
		c.progress.step("processes ended", func() error { return group.kill(ctx) }),
		removeLink(ctx, c.state.Interface),
		c.progress.step("cgroups removed", func() error { return group.remove(ctx) }),
	)
}

// Running reports whether the process with the cluster's namespaces runs. After
// a reboot it does not; Start then removes what is left and starts the cluster
// again. [Cluster.Status] reports on each component.
func (c *Cluster) Running() bool {
	p, ok := c.process(holder)
	return ok && c.state.Boot == bootID() && p.Alive()
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.state.Name }

// Dir returns the cluster's folder.
func (c *Cluster) Dir() string { return c.dir }

// Node returns the name of the one node.
func (c *Cluster) Node() string { return c.state.Node }

// NodeIP returns the node's address. The API server (port 6443), the kubelet
// (10250) and every process of [Cluster.StartProcess] have this address. This
// machine and pods can reach it. If the node is a virtual machine, its kubelet
// has another address: [Cluster.KubeletIP].
func (c *Cluster) NodeIP() netip.Addr { return c.state.Network.Node }

// KubeletIP returns the address of the kubelet, and of pods in the node's own
// network.
func (c *Cluster) KubeletIP() netip.Addr {
	if c.state.Kind == NodeV2 {
		return c.state.Network.Machine
	}
	return c.state.Network.Node
}

// HostIP returns the address at which pods and the API server reach this
// machine. Use it for a server that a test runs outside the cluster.
func (c *Cluster) HostIP() netip.Addr { return c.state.Network.Host }

// Binary returns the path of one of the built programs, such as "kubectl".
func (c *Cluster) Binary(name string) string { return c.state.Programs.Path(name) }

// BinaryDir returns the folder of a program, for PATH.
func (c *Cluster) BinaryDir(name string) string { return filepath.Dir(c.Binary(name)) }

// Log returns the path of a component's log.
func (c *Cluster) Log(component string) string {
	return filepath.Join(c.dir, "logs", component+".log")
}

// CA returns the path of the CA certificate that signs the certificates of the
// API server, its clients and the kubelet.
func (c *Cluster) CA() string { return filepath.Join(c.dir, "pki", "ca.crt") }

// FrontProxyCA returns the path of the CA certificate that signs the
// aggregation layer's client certificate.
func (c *Cluster) FrontProxyCA() string { return filepath.Join(c.dir, "pki", "front-proxy-ca.crt") }

// Kubeconfig returns the path of the cluster administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// RESTConfig returns the cluster administrator's client configuration.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	return c.UserConfig("kubernetes-admin", "system:masters")
}
