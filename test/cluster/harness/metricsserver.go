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
	// Address is where it serves, for [Cluster.RegisterAPIService].
	Address netip.AddrPort
	// Config reaches it directly, past the API server, as the cluster's
	// administrator: a client of k8s.io/metrics made from it asks metrics-server
	// even while another server owns metrics.k8s.io.
	Config *rest.Config
	// Process is its name for [Cluster.Log] and [Cluster.StopProcess].
	Process string
}

// StartMetricsServer starts metrics-server, the peer that weir is compared with,
// measuring every 15 seconds unless args say otherwise. It registers nothing:
// metrics.k8s.io stays whose it is. Args follow the harness's own, so that they
// win.
func (c *Cluster) StartMetricsServer(ctx context.Context, args ...string) (*MetricsServer, error) {
	const name, port = "metrics-server", 4443
	kubeconfig := filepath.Join(c.dir, name+".kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig, name, "system:masters"); err != nil {
		return nil, err
	}
	p := c.pki()
	if err := p.issue(name, "ca", subject{name: name, hosts: []string{name}, ips: []netip.Addr{c.NodeIP()}}); err != nil {
		return nil, err
	}
	err := c.run(ctx, component{
		name: name, path: c.Binary(name),
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
