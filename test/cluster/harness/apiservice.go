//go:build linux

package harness

import (
	"context"
	"fmt"
	"net/netip"
)

// RegisterAPIService makes a server outside any pod serve an API group and
// version. The server runs on the node, or on this machine at [Cluster.HostIP].
// RegisterAPIService creates a Service without selector in kube-system, its
// endpoint and the APIService, and returns when the API server reports it as
// available. The server's certificate is not verified.
func (c *Cluster) RegisterAPIService(ctx context.Context, group, version string, server netip.AddrPort) error {
	name := version + "." + group
	err := c.Apply(ctx, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: kube-system}
spec: {ports: [{name: https, port: 443, targetPort: %[5]d}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s, namespace: kube-system, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
endpoints: [{addresses: ["%[4]s"], conditions: {ready: true}}]
ports: [{name: https, port: %[5]d, protocol: TCP}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: %[2]s.%[3]s}
spec:
  group: %[3]s
  version: %[2]s
  service: {name: %[1]s, namespace: kube-system, port: 443}
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
`, serviceName(group, version), version, group, server.Addr(), server.Port()))
	if err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	if _, _, err := c.Kubectl(ctx, "wait", "--for=condition=Available", "--timeout=60s", "apiservice/"+name); err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	return nil
}

// UnregisterAPIService removes what RegisterAPIService created.
func (c *Cluster) UnregisterAPIService(ctx context.Context, group, version string) error {
	service := serviceName(group, version)
	_, _, err := c.Kubectl(ctx, "delete", "--ignore-not-found", "-n", "kube-system",
		"apiservice/"+version+"."+group, "service/"+service, "endpointslice/"+service)
	if err != nil {
		return fmt.Errorf("unregister %s.%s: %w", version, group, err)
	}
	return nil
}

// serviceName returns a DNS label that is different for each group and version.
func serviceName(group, version string) string {
	b := []byte("outside-" + version + "-" + group)
	for i := range b {
		if b[i] == '.' {
			b[i] = '-'
		}
	}
	return string(b)
}
