//go:build linux

package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hostTools are programs that come from the distribution.
type hostTools struct {
	runc string // path
	cni  string // folder of network plugins
}

// findHostTools finds programs in the folders of path, and network plugins in
// the first folder of plugins that has them. Its error names the Debian
// packages that are missing. With noPods, it does not need what only pods need.
func findHostTools(path, plugins []string, noPods bool) (hostTools, error) {
	var t hostTools
	var missing, packages []string
	lack := func(what, pkg string) {
		missing, packages = append(missing, what), append(packages, pkg)
	}
	look := func(name, pkg string) string {
		for _, dir := range path {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path
			}
		}
		lack(name, pkg)
		return ""
	}
	if !noPods {
		t.runc = look("runc", "runc")
		look("iptables", "iptables")
	}
	look("ip", "iproute2")
	look("nsenter", "util-linux")
	for _, dir := range plugins {
		if exists(filepath.Join(dir, "bridge")) {
			t.cni = dir
			break
		}
	}
	if t.cni == "" && !noPods {
		lack("CNI plugins", "containernetworking-plugins")
	}
	if len(missing) > 0 {
		return t, fmt.Errorf("%w: %s: apt-get install %s", ErrHostTools, strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	return t, nil
}

// WorkloadImage is the image of test/cluster/workload, which every cluster has.
// Pods' sandboxes use it too.
const WorkloadImage = "weir.test/workload:latest"

// writeConfigs writes the configuration of the runtime, the network plugins, the
// kubelet and the audit log.
func (c *Cluster) writeConfigs(t hostTools) error {
	kubelet, err := json.MarshalIndent(c.kubeletConfig(), "", "  ") // JSON is YAML
	if err != nil {
		return fmt.Errorf("write kubelet configuration: %w", err)
	}
	network, err := json.MarshalIndent(c.networkConfig(), "", "  ")
	if err != nil {
		return fmt.Errorf("write network configuration: %w", err)
	}
	write := func(path string, b []byte) error {
		path = filepath.Join(c.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
		return nil
	}
	return errors.Join(
		os.MkdirAll(filepath.Join(c.dir, "manifests"), 0o755),
		os.MkdirAll(c.auditDir(), 0o755),
		write("containerd.toml", c.containerdConfig(t)),
		write("cni/10-weir.conflist", network),
		write("kubelet.yaml", kubelet),
		write("audit.yaml", auditPolicy),
		write("resolv.conf", nil), // no DNS: there are only the addresses of Services
	)
}

const containerdSocket = "/run/containerd/containerd.sock"

func (c *Cluster) containerdConfig(t hostTools) []byte {
	return fmt.Appendf(nil, `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = %q

[metrics]
  address = "%s:1338"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q

[plugins."io.containerd.cri.v1.runtime"]
  # Where the kernel withholds CAP_SYS_RESOURCE, runc cannot lower a process's
  # score, and no sandbox starts.
  restrict_oom_score_adj = true
  enable_cdi = false
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        SystemdCgroup = false
        BinaryName = %q

[plugins."io.containerd.nri.v1.nri"]
  disable = true
`, containerdSocket, c.state.Network.Node, WorkloadImage, t.cni, filepath.Join(c.dir, "cni"), t.runc)
}

func (c *Cluster) networkConfig() map[string]any {
	plugins := []any{map[string]any{
		"type":        "bridge",
		"bridge":      "cni0",
		"isGateway":   true,
		"hairpinMode": true, // a pod may call a Service of which it is an endpoint
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": [][]map[string]string{{{"subnet": c.state.Network.Pods.String()}}},
			"routes": []map[string]string{{"dst": "0.0.0.0/0"}},
		},
	}}
	if c.state.Kind != NodeV2 { // a virtual machine has no iptables, and so no ports of pods
		plugins = append(plugins, map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}})
	}
	return map[string]any{"cniVersion": "1.0.0", "name": "weir", "plugins": plugins}
}

func (c *Cluster) kubeletConfig() map[string]any {
	p := c.pki()
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": p.path("ca.crt")},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"tlsCertFile":              p.path("kubelet.crt"),
		"tlsPrivateKeyFile":        p.path("kubelet.key"),
		"readOnlyPort":             10255, // unauthenticated, so that tests can read the kubelet directly
		"healthzBindAddress":       "0.0.0.0",
		"healthzPort":              10248,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               c.state.Cgroup,
		"kubeletCgroups":           string(c.group("kubelet")), // its present cgroup, so that it reports its own usage
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"resolvConf":               filepath.Join(c.dir, "resolv.conf"),
		"staticPodPath":            filepath.Join(c.dir, "manifests"),
		// The disk is this machine's and fuller than a node's. Tests cause evictions
		// themselves.
		"evictionHard": map[string]string{
			"memory.available": "100Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%", "imagefs.inodesFree": "1%",
		},
		"imageGCHighThresholdPercent": 100, // a removed image cannot be pulled again
		"imageGCLowThresholdPercent":  99,
		"shutdownGracePeriod":         "0s",
	}
	maps.Copy(config, c.options.KubeletConfig)
	return config
}
