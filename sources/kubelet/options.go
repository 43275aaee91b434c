package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/transport"

	"github.com/weir-metrics/weir/metric"
)

// Endpoint is an endpoint of a kubelet, or that of a cAdvisor that runs on its own.
type Endpoint string

// The endpoints.
const (
	Resource   Endpoint = "resource"   // GET /metrics/resource
	Summary    Endpoint = "summary"    // GET /stats/summary
	CAdvisor   Endpoint = "cadvisor"   // GET /metrics/cadvisor
	Standalone Endpoint = "standalone" // GET /metrics of a cAdvisor, which gets no credentials of weir's
)

// Options select the nodes and the endpoint to read, and how to reach them. The zero
// Options reads /metrics/resource of every node over HTTPS.
type Options struct {
	// Endpoint is the endpoint to read. Default Resource.
	Endpoint Endpoint
	// Scheme is "https" or "http". Default "https", and "http" for Standalone.
	Scheme string
	// Port is the port of every kubelet. Default 0: the port in the node's status, or DefaultPort if
	// the status has none. For Standalone it is StandalonePort.
	Port int
	// StatusPort prefers the port in the node's status to Port. Port is then used for nodes that have
	// no port in their status.
	StatusPort bool
	// AddressTypes are the types of node addresses to use, in order of preference. Default
	// DefaultAddressTypes.
	AddressTypes []string
	// Selector excludes nodes if it does not match their labels. Default nil: no node is excluded.
	Selector labels.Selector
	// Targets is a static list of kubelets. It replaces the nodes of the cluster; see ParseTargets. An
	// entry "@FILE" means the lines of that file.
	Targets []string

	// CAFile has the CA certificates that verify the kubelets' certificates. Default: the cluster's CA
	// in a cluster, otherwise the system's.
	CAFile string
	// Insecure accepts any certificate. It is for tests.
	Insecure bool
	// CertFile and KeyFile are weir's client certificate. They are read again when they change.
	CertFile, KeyFile string
	// TokenFile has a bearer token. It is read again when it changes. Default: in a cluster the token
	// of the service account, if there is no client certificate and no Token. Targets get no token
	// unless TokenFile names one.
	TokenFile string
	// Token returns the bearer token for a read. It replaces the tokens of the service account and of
	// Identity. It is used where no file above is set, and only over HTTPS for nodes of the cluster.
	Token func(context.Context) (string, error)
	// RefuseToken, if set, is called with each node that does not accept a token of Token (status 401).
	RefuseToken func(node metric.NodeName, token string)
	// Identity has the credentials and the CA of a kubeconfig. They replace the service account where
	// no file above is set, and only over HTTPS. Its own insecure setting is ignored: only Insecure
	// switches verification off.
	Identity *transport.Config

	// Resolution is the time between two reads. 0 means the manager's own interval.
	Resolution time.Duration
	// Timeout is the limit on the time of one read. Default DefaultTimeout.
	Timeout time.Duration
	// MaxBytes bounds the size of an uncompressed payload, and MaxSamples the number of samples in one
	// read. 0 means a bound by the number of pods that the API server has on the node, 250 if
	// that is not known, and at most DefaultMaxBytes and payload.DefaultMaxSamples.
	MaxBytes   int64
	MaxSamples int
	// MaxIdle bounds the number of connections that stay open between reads. Kubelets beyond this
	// number get a new connection for each read. Default MaxConnections().
	MaxIdle int
	// Gzip asks for compressed payloads. It is for expensive links: compression costs both sides more
	// CPU than the encryption and transfer of the larger payload.
	Gzip bool
}

// The defaults.
const (
	DefaultPort     = 10250
	StandalonePort  = 8080
	DefaultTimeout  = 10 * time.Second
	DefaultMaxBytes = 64 << 20
)

// DefaultAddressTypes returns the types of node addresses in the order in which they are tried.
func DefaultAddressTypes() []string {
	return []string{"InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS"}
}

// withDefaults returns o with defaults in place of zero values.
func (o Options) withDefaults() Options {
	if len(o.AddressTypes) == 0 {
		o.AddressTypes = DefaultAddressTypes()
	}
	o.Endpoint = cmp.Or(o.Endpoint, Resource)
	if o.Endpoint == Standalone {
		o.Scheme = cmp.Or(o.Scheme, "http")
		o.Port = cmp.Or(o.Port, StandalonePort)
	}
	o.Scheme = cmp.Or(o.Scheme, "https")
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxIdle = cmp.Or(o.MaxIdle, MaxConnections())
	return o
}

// validate returns what is wrong with o. The defaults are already set.
func (o *Options) validate() error {
	switch {
	case !slices.Contains([]Endpoint{Resource, Summary, CAdvisor, Standalone}, o.Endpoint):
		return fmt.Errorf("endpoint %q is unknown; use resource, summary or cadvisor", o.Endpoint)
	case o.Scheme != "https" && o.Scheme != "http":
		return fmt.Errorf("scheme %q is unknown; use https or http", o.Scheme)
	case o.Port < 0 || o.Port > 65535:
		return fmt.Errorf("port %d is out of range; use 1 to 65535, or 0 for the port in the node's status", o.Port)
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("a client certificate needs both client-cert and client-key; give the other one too")
	case o.Insecure && o.CAFile != "":
		return errors.New("insecure-tls accepts any certificate, so ca has no use; drop one of the two")
	}
	for name, v := range map[string]int64{
		"timeout": int64(o.Timeout), "max-bytes": o.MaxBytes, "max-samples": int64(o.MaxSamples),
	} {
		if v < 0 {
			return fmt.Errorf("%s is negative; give a positive value, or none for the default", name)
		}
	}
	return nil
}

// isIP reports whether host is an IP address.
func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
