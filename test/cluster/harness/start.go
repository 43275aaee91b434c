//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// start starts a cluster after its programs are built and its folder is
// claimed. The control plane starts in parallel with the runtime and the image.
func (c *Cluster) start(ctx context.Context, tools hostTools) error {
	group := cgroup(c.state.Cgroup)
	if err := errors.Join(group.make(true), group.child("system").make(true)); err != nil {
		return err
	}
	if err := c.progress.step("namespaces, mounts and link", func() error { return c.hold(ctx) }); err != nil {
		return err
	}
	if err := c.progress.step("certificates and configuration", func() error {
		return errors.Join(c.writePKI(), c.writeConfigs(tools))
	}); err != nil {
		return err
	}

	if c.options.ControlPlane {
		return c.startAPIServer(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	abort := func(err error) error { // the first error ends the waiting of the other half
		if err != nil {
			cancel(err)
		}
		return err
	}
	runtime := make(chan error, 1)
	startRuntime := c.startRuntime
	if c.state.Kind == NodeV2 {
		startRuntime = c.startMachine
	}
	go func() { runtime <- abort(startRuntime(ctx)) }()
	control := abort(c.startControlPlane(ctx))
	if err := errors.Join(control, <-runtime); err != nil {
		if first := context.Cause(ctx); first != nil {
			return first
		}
		return err
	}
	if c.state.Kind == NodeV2 {
		if _, err := c.GuestOutput(ctx, "systemctl", "start", "kubelet"); err != nil {
			return err
		}
	} else if err := c.startComponent(ctx, c.kubelet()); err != nil {
		return err
	}
	if err := c.progress.step("node ready", func() error { return c.awaitNode(ctx) }); err != nil {
		return err
	}
	return c.startComponent(ctx, c.proxy()) // not earlier, because it waits half a minute for its node
}

func (c *Cluster) startComponent(ctx context.Context, k component) error {
	return c.progress.step(k.name, func() error { return c.run(ctx, k) })
}

// startAPIServer starts etcd and the API server, and writes the rights of its
// clients.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	for _, k := range []component{c.etcd(), c.apiServer()} {
		if err := c.startComponent(ctx, k); err != nil {
			return err
		}
	}
	return c.writeAdminKubeconfig()
}

func (c *Cluster) startControlPlane(ctx context.Context) error {
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	for _, k := range []component{c.controllerManager(), c.scheduler()} {
		if err := c.startComponent(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startRuntime(ctx context.Context) error {
	if err := c.startComponent(ctx, c.containerd()); err != nil {
		return err
	}
	return c.progress.step("image "+WorkloadImage, func() error {
		binary, err := c.buildWorkload(ctx)
		if err != nil {
			return err
		}
		return c.loadWorkload(ctx, binary)
	})
}

func (c *Cluster) pki() pki { return pki(filepath.Join(c.dir, "pki")) }

// writePKI creates the authorities and the certificates of all components.
func (c *Cluster) writePKI() error {
	p, n := c.pki(), c.state.Network
	if err := errors.Join(
		p.authority("ca", "weir-cluster"),
		p.authority("front-proxy-ca", "weir-cluster-front-proxy"),
		p.key("service-account"),
	); err != nil {
		return err
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return errors.Join(
		p.issue("apiserver", "ca", subject{
			name:  "kube-apiserver",
			hosts: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			ips:   []netip.Addr{loopback, n.Node, n.Services.Addr().Next()}, // the first address is that of the kubernetes Service
		}),
		p.issue("kubelet", "ca", subject{
			name: "system:node:" + c.state.Node, groups: []string{"system:nodes"},
			hosts: []string{c.state.Node, "localhost"}, ips: []netip.Addr{loopback, n.Node, n.Machine},
		}),
		p.issue("front-proxy-client", "front-proxy-ca", subject{name: "front-proxy-client"}),
		p.issue("kubelet-client", "ca", subject{name: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}}),
		c.writeKubeconfig("controller-manager.kubeconfig", "system:kube-controller-manager"),
		c.writeKubeconfig("scheduler.kubeconfig", "system:kube-scheduler"),
		c.writeKubeconfig("proxy.kubeconfig", "system:kube-proxy"),
		c.writeKubeconfig("kubelet.kubeconfig", "system:node:"+c.state.Node, "system:nodes"),
	)
}

func (c *Cluster) url(scheme string, port int, path string) string {
	return fmt.Sprintf("%s://%s:%d%s", scheme, c.state.Network.Node, port, path)
}

func (c *Cluster) etcd() component {
	const client = "http://127.0.0.1:2379" // the loopback of the namespace: only the node's processes can reach it
	return component{
		name: "etcd", path: c.Binary("etcd"), address: client,
		health: c.url("http", 2381, "/health"),
		args: []string{
			"--data-dir=" + filepath.Join(c.dir, "etcd"),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--listen-metrics-urls=" + c.url("http", 2381, ""),
			"--unsafe-no-fsync", // its data is removed with the cluster
			"--log-level=warn",
		},
	}
}

func (c *Cluster) apiServer() component {
	p, n := c.pki(), c.state.Network
	var alone []string
	if c.options.ControlPlane {
		alone = []string{"--disable-admission-plugins=ServiceAccount"} // it would wait for service accounts that no controller creates
	}
	return component{
		name: "kube-apiserver", path: c.Binary("kube-apiserver"),
		address: c.url("https", 6443, ""), health: c.url("https", 6443, "/readyz"),
		args: slices.Concat([]string{
			"--etcd-servers=http://127.0.0.1:2379",
			"--bind-address=0.0.0.0", "--secure-port=6443", "--advertise-address=" + n.Node.String(),
			"--tls-cert-file=" + p.path("apiserver.crt"), "--tls-private-key-file=" + p.path("apiserver.key"),
			"--client-ca-file=" + p.path("ca.crt"),
			"--service-cluster-ip-range=" + n.Services.String(),
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
			"--kubelet-preferred-address-types=InternalIP", "--kubelet-certificate-authority=" + p.path("ca.crt"),
			"--kubelet-client-certificate=" + p.path("kubelet-client.crt"), "--kubelet-client-key=" + p.path("kubelet-client.key"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + p.path("service-account.pub"), "--service-account-signing-key-file=" + p.path("service-account.key"),
			"--requestheader-client-ca-file=" + p.path("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
			"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + p.path("front-proxy-client.crt"), "--proxy-client-key-file=" + p.path("front-proxy-client.key"),
		}, c.auditArgs(), alone, c.options.APIServerArgs),
	}
}

func (c *Cluster) controllerManager() component {
	p, kubeconfig := c.pki(), filepath.Join(c.dir, "controller-manager.kubeconfig")
	return component{
		name: "kube-controller-manager", path: c.Binary("kube-controller-manager"),
		address: c.url("https", 10257, ""), health: c.url("https", 10257, "/healthz"),
		args: slices.Concat([]string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--leader-elect=false", "--use-service-account-credentials",
			"--root-ca-file=" + p.path("ca.crt"), "--service-account-private-key-file=" + p.path("service-account.key"),
			"--cluster-signing-cert-file=" + p.path("ca.crt"), "--cluster-signing-key-file=" + p.path("ca.key"),
			// In a test, a HorizontalPodAutoscaler decides within seconds, not minutes.
			"--horizontal-pod-autoscaler-sync-period=5s",
			"--horizontal-pod-autoscaler-downscale-stabilization=20s",
			"--horizontal-pod-autoscaler-initial-readiness-delay=5s",
			"--horizontal-pod-autoscaler-cpu-initialization-period=20s",
		}, c.options.ControllerManagerArgs),
	}
}

func (c *Cluster) scheduler() component {
	kubeconfig := filepath.Join(c.dir, "scheduler.kubeconfig")
	return component{
		name: "kube-scheduler", path: c.Binary("kube-scheduler"),
		address: c.url("https", 10259, ""), health: c.url("https", 10259, "/healthz"),
		args: slices.Concat([]string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--leader-elect=false",
		}, c.options.SchedulerArgs),
	}
}

func (c *Cluster) proxy() component {
	var masquerade []string
	if c.state.Kind == NodeV2 {
		// A pod calls a Service through this proxy, which is outside the machine, and the
		// answer must go back the same way.
		masquerade = []string{"--masquerade-all"}
	}
	return component{
		name: "kube-proxy", path: c.Binary("kube-proxy"),
		address: c.url("http", 10256, ""), health: c.url("http", 10256, "/livez"),
		args: slices.Concat([]string{
			"--kubeconfig=" + filepath.Join(c.dir, "proxy.kubeconfig"),
			"--hostname-override=" + c.state.Node,
			"--proxy-mode=iptables", "--cluster-cidr=" + c.state.Network.Pods.String(),
			"--healthz-bind-address=0.0.0.0:10256",
			// These are limits of the whole machine, which must not change.
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0",
		}, masquerade, c.options.ProxyArgs),
	}
}

func (c *Cluster) containerd() component {
	return component{
		name: "containerd", path: c.Binary("containerd"),
		address: containerdSocket, health: c.url("http", 1338, "/v1/metrics"),
		args: []string{"--config", filepath.Join(c.dir, "containerd.toml")},
	}
}

func (c *Cluster) kubelet() component {
	return component{
		name: "kubelet", path: c.Binary("kubelet"),
		address: c.url("https", 10250, ""), health: c.url("http", 10248, "/healthz"),
		args: slices.Concat([]string{
			"--config=" + filepath.Join(c.dir, "kubelet.yaml"),
			"--kubeconfig=" + filepath.Join(c.dir, "kubelet.kubeconfig"),
			"--hostname-override=" + c.state.Node, "--node-ip=" + c.state.Network.Node.String(),
			"--runtime-cgroups=" + string(c.group("containerd")), // so that it reports the runtime's use
		}, c.options.KubeletArgs),
	}
}

// RestartComponent ends one of the cluster's components, if it runs, and starts
// it again with the same flags. The processes that it started, such as the
// runtime's containers, continue. name is "etcd", "kube-apiserver",
// "kube-controller-manager", "kube-scheduler", "kube-proxy", "containerd" or
// "kubelet". After Open, the flags are the default ones, without those of
// Start's options.
func (c *Cluster) RestartComponent(ctx context.Context, name string) error {
	for _, k := range []component{
		c.etcd(), c.apiServer(), c.controllerManager(), c.scheduler(), c.proxy(), c.containerd(), c.kubelet(),
	} {
		if k.name == name {
			if c.state.Kind == NodeV2 && (name == "containerd" || name == "kubelet") {
				_, err := c.GuestOutput(ctx, "systemctl", "restart", name)
				return err
			}
			if err := c.KillProcess(ctx, name); err != nil {
				return err
			}
			return c.startComponent(ctx, k)
		}
	}
	return fmt.Errorf("restart %s: no such component", name)
}

// awaitNode returns when a pod could run: the node is ready and the default
// service account exists.
func (c *Cluster) awaitNode(ctx context.Context) error {
	config, err := c.RESTConfig()
	if err != nil {
		return err
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	defer transport.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	timeout := 2 * time.Minute
	if c.state.Kind == NodeV2 {
		timeout = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state := "it has not registered"
	err = poll(ctx, 200*time.Millisecond, func() (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, c.state.Node, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // not yet registered, or the API server is busy: asked again
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				state = condition.Message
				if condition.Status != corev1.ConditionTrue {
					return false, nil
				}
			}
		}
		_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		if c.state.Kind == NodeV2 {
			err = errors.Join(err, c.saveJournal(context.WithoutCancel(ctx), "kubelet"))
		}
		return fmt.Errorf("wait for node %s: %w: %s\n%s", c.state.Node, err, state, c.tail("kubelet"))
	}
	return nil
}
