//go:build linux

package harness

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
)

// MetricsServer is a metrics-server that runs on the cluster's node.
type MetricsServer struct {
	// Address is the address of its API, for [Cluster.RegisterAPIService].
	Address netip.AddrPort
	// Config is the configuration of a client that reaches metrics-server directly,
	// without the API server, as the cluster's administrator. A client of
	// k8s.io/metrics with it asks metrics-server even while another server serves
	// metrics.k8s.io.
	Config *rest.Config
	// Process is the name for [Cluster.Log] and [Cluster.StopProcess].
	Process string
}

// StartMetricsServer starts metrics-server, which weir is compared with. By
// default it measures every 15 seconds. It does not register metrics.k8s.io.
// args come after the harness's own arguments, so they take precedence.
func (c *Cluster) StartMetricsServer(ctx context.Context, args ...string) (*MetricsServer, error) {
	const name, port = "metrics-server", 4443
	program, err := BuildMetricsServer(ctx, c.options.Progress)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.dir, name+".kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, name, "system:masters"); err != nil {
		return nil, err
	}
	p := c.pki()
	if err := p.issue(name, "ca", subject{name: name, hosts: []string{name}, ips: []netip.Addr{c.NodeIP()}}); err != nil {
		return nil, err
	}
	err = c.run(ctx, component{
		name: name, path: program,
		address: c.url("https", port, ""), health: c.url("https", port, "/livez"),
		args: append([]string{
			"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
			"--secure-port=" + strconv.Itoa(port), "--tls-cert-file=" + p.path(name+".crt"), "--tls-private-key-file=" + p.path(name+".key"),
			"--kubelet-certificate-authority=" + p.path("ca.crt"), "--kubelet-preferred-address-types=InternalIP",
			"--metric-resolution=15s",
		}, args...),
	})
	if err != nil {
		return nil, err
	}
	config, err := c.RESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reach metrics-server: %w", err)
	}
	config.Host = c.url("https", port, "")
	return &MetricsServer{Address: netip.AddrPortFrom(c.NodeIP(), port), Config: config, Process: name}, nil
}
