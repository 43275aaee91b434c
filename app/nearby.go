package app

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"k8s.io/client-go/rest"
)

// nearby returns what carries requests to kubelets and agents: as whom the API server
// knows us, for they ask it who comes, but with a trust of their own. That is the
// certificates of caFile, or of the cluster if it is empty; or anybody's, if insecure.
func nearby(kube *rest.Config, caFile string, insecure bool) (http.RoundTripper, error) {
	c := rest.CopyConfig(kube)
	c.ServerName = ""
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // no proxy leads to nodes
	c.Insecure = insecure                                               // whatever holds for the API server
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
