// Package access is how weir reaches the endpoints of a cluster: which of its credentials each is
// shown, and how much of its memory and time an answer of the API server may take.
//
//   - access.go: credentials for kubelets and agents;
//   - limits.go: limits of the API server's answers;
//   - watch.go: errors of watches that delay the end of the process.
package access

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"k8s.io/client-go/rest"
)

// WithTokenFile returns the configuration with the token in a file as the only credentials. Without
// a file it returns the configuration unchanged.
func WithTokenFile(kube *rest.Config, file string) *rest.Config {
	if file == "" {
		return kube
	}
	kube = rest.AnonymousClientConfig(kube)
	kube.BearerTokenFile = file
	return kube
}

// NodeTransport returns a transport for requests to a kubelet or agents, with the credentials of
// kube, which the kubelet and the agents ask the API server to verify. It trusts the certificates of
// caFile or, if that is empty, those of the cluster. If insecure, it trusts any certificate.
func NodeTransport(kube *rest.Config, caFile string, insecure bool) (http.RoundTripper, error) {
	c := rest.CopyConfig(kube)
	c.ServerName = ""
	c.WrapTransport = nil                                               // limits are those of the API server's answers
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // nodes are not behind a proxy
	c.Insecure = insecure                                               // independent of the setting for the API server
	switch {
	case insecure:
		c.CAFile, c.CAData = "", nil
	case caFile != "":
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("read certificates: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificates: %s has none in PEM", caFile)
		}
		c.CAFile, c.CAData = caFile, nil
	}
	return rest.TransportFor(c)
}
