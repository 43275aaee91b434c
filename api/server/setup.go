package server

import (
	"crypto/tls"
	"fmt"
	"net"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/path"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/weir-metrics/weir/replicas/peer"
)

// listen opens the port, with the certificates that are shown there.
func listen(g *genericapiserver.Config, serving *genericoptions.SecureServingOptionsWithLoopback, known *peer.Certificate) (*listener, error) {
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}); err != nil {
		return nil, fmt.Errorf("make self-signed certificate: %w", err)
	}
	// Read here first: the error says which file it is, and what the library
	// begins before it has read them it does not end.
	if pair := serving.ServerCert.CertKey; pair.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile); err != nil {
			return nil, fmt.Errorf("read serving certificate %s and its key: %w", pair.CertFile, err)
		}
	}
	if err := serving.ApplyTo(&g.SecureServing, &g.LoopbackClientConfig); err != nil {
		if g.SecureServing == nil { // the library opens the port first
			return nil, fmt.Errorf("open secure port: %w; --secure-port and --bind-address choose another", err)
		}
		_ = g.SecureServing.Listener.Close() // nothing was accepted yet
		return nil, fmt.Errorf("set up TLS: %w", err)
	}
	ln := newListener(g.SecureServing.Listener)
	g.SecureServing.Listener = ln
	if known == nil {
		return ln, nil
	}
	sni, err := dynamiccertificates.NewStaticSNICertKeyContent("peer", known.PEM(), known.KeyPEM(), peer.Name)
	if err != nil {
		_ = ln.Close() // as above
		return nil, fmt.Errorf("take peer certificate: %w", err)
	}
	g.SecureServing.SNICerts = append(g.SecureServing.SNICerts, sni)
	return ln, nil
}

// authenticate sets up who callers are and what they may do. It returns what
// allows the paths that are open to everyone.
func authenticate(g *genericapiserver.Config, o Options, kubeconfig string) (open authorizer.Authorizer, err error) {
	authn, authz := *o.Authentication, *o.Authorization
	if authn.RemoteKubeConfigFile == "" {
		authn.RemoteKubeConfigFile = kubeconfig
	}
	if authz.RemoteKubeConfigFile == "" {
		authz.RemoteKubeConfigFile = kubeconfig
	}
	if err := authn.ApplyTo(&g.Authentication, g.SecureServing, nil); err != nil {
		return nil, fmt.Errorf("set up authentication: %w; it reads the ConfigMap extension-apiserver-authentication in kube-system: "+
			"bind the Role extension-apiserver-authentication-reader there, or say --authentication-skip-lookup and give --client-ca-file and --requestheader-client-ca-file", err)
	}
	if err := authz.ApplyTo(&g.Authorization); err != nil {
		return nil, fmt.Errorf("set up authorization: %w", err)
	}
	open, err = path.NewAuthorizer(authz.AlwaysAllowPaths)
	if err != nil {
		return nil, fmt.Errorf("read --authorization-always-allow-paths: %w", err)
	}
	return open, nil
}

// knowsProxy holds once the certificate is known that the aggregating API server
// shows. The library reads it only after it has begun to listen, and answers 401
// to everybody who comes over the aggregator until then.
func knowsProxy(trusts *authenticatorfactory.RequestHeaderConfig) Check {
	return Check{Name: "authentication", Waits: func() []string {
		if _, ok := trusts.CAContentProvider.VerifyOptions(); !ok {
			return []string{"requestheader-client-ca-file was not read yet from the ConfigMap extension-apiserver-authentication"}
		}
		return nil
	}}
}
