// Package peer lets the replicas of a weir recognise each other.
//
// Each replica makes a certificate for Name when it starts, and publishes it in an annotation of a
// Lease (packages leader and members). A replica that calls another one asks for that name and
// trusts only that certificate. So the certificate for other clients can have any names and any
// issuer.
//
// The caller sends the credentials that NewTransports gets. In a cluster they are a token for
// Audience, which only weir accepts.
package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// Name is the server name under which a replica shows its certificate.
const Name = "weir-peer"

// Audience is the audience of the tokens that replicas show each other.
const Audience = "weir-replica"

// certificateLifetime is how long a certificate is valid before and after its creation. This is
// longer than any process lives, so the caller's clock does not matter.
const certificateLifetime = 10 * 365 * 24 * time.Hour

// Certificate is the certificate of a replica. It does not change while the process lives.
type Certificate struct{ cert, key []byte }

// NewCertificate returns a new certificate, signed by itself.
func NewCertificate() (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make peer key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	// It signs itself, and is the only root that a caller trusts.
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: Name}, DNSNames: []string{Name},
		NotBefore: now.Add(-certificateLifetime), NotAfter: now.Add(certificateLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make peer certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode peer key: %w", err)
	}
	return &Certificate{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// PEM returns the public part, to be published.
func (c *Certificate) PEM() []byte { return c.cert }

// KeyPEM returns the private key, for the server.
func (c *Certificate) KeyPEM() []byte { return c.key }

// Transports are HTTP transports to peers, each with a name, with the credentials of NewTransports.
// Several goroutines may call its methods.
type Transports struct {
	config *rest.Config

	mu    sync.Mutex
	peers map[string]knownPeer
}

// knownPeer is the transport to a peer, which has this address and certificate.
type knownPeer struct {
	address, certificate string
	transport            http.RoundTripper
}

// NewTransports returns Transports with the credentials of kube: a token or a client certificate.
// The rest of kube is ignored.
func NewTransports(kube *rest.Config) *Transports {
	c := rest.AnonymousClientConfig(kube)
	c.BearerToken, c.BearerTokenFile = kube.BearerToken, kube.BearerTokenFile
	c.CertFile, c.CertData, c.KeyFile, c.KeyData = kube.CertFile, kube.CertData, kube.KeyFile, kube.KeyData
	c.Insecure, c.CAFile = false, ""
	c.ServerName = Name
	c.UserAgent = "weir-peer"
	c.Dial, c.Transport, c.WrapTransport = nil, nil, nil
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // pods reach pods directly
	c.DisableCompression = true                                         // the client decides about compression
	return &Transports{config: c, peers: map[string]knownPeer{}}
}

// For returns the transport to the peer with a name, which is at address, HOST:PORT, and has this
// certificate. It keeps the connections until one of them changes.
func (t *Transports) For(name, address string, certificate []byte) (http.RoundTripper, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.peers[name]
	if ok && known.address == address && known.certificate == string(certificate) {
		return known.transport, nil
	}
	if _, err := certutil.ParseCertsPEM(certificate); err != nil {
		return nil, fmt.Errorf("read certificate of peer %s: %w", address, err)
	}
	c := rest.CopyConfig(t.config)
	c.Host = "https://" + address
	c.CAData = certificate
	transport, err := rest.TransportFor(c)
	if err != nil {
		return nil, fmt.Errorf("make transport to peer %s: %w", address, err)
	}
	if ok {
		utilnet.CloseIdleConnectionsFor(known.transport)
	}
	t.peers[name] = knownPeer{address, string(certificate), transport}
	return transport, nil
}

// Certificate returns the certificate that the peer with a name had last. It returns false if the peer is
// not known.
func (t *Transports) Certificate(name string) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.peers[name]
	return []byte(known.certificate), ok
}

// Retain forgets the peers for whose names keep returns false, and closes the idle connections to them.
func (t *Transports) Retain(keep func(name string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, known := range t.peers {
		if !keep(name) {
			utilnet.CloseIdleConnectionsFor(known.transport)
			delete(t.peers, name)
		}
	}
}

// Route turns the leader of package leader into the form of package forward: the URL of the leader
// and its transport, or that this process answers itself. This process also answers itself if the
// leader is unknown or its certificate cannot be read.
func (t *Transports) Route(leader func() (address string, certificate []byte, self bool)) func() (string, http.RoundTripper, bool) {
	return func() (string, http.RoundTripper, bool) {
		address, certificate, self := leader()
		if !self && address != "" {
			if transport, err := t.For("leader", address, certificate); err == nil {
				return "https://" + address, transport, false
			}
		}
		return "", nil, true
	}
}

// Close forgets all peers.
func (t *Transports) Close() { t.Retain(func(string) bool { return false }) }
