package simulator

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// An Authority signs a serving certificate for each node when the node first
// needs it. The subject is system:node:NAME, and the certificate is for the
// node's name and address.
type Authority struct {
	key     *ecdsa.PrivateKey
	root    *x509.Certificate
	pem     []byte
	nodeKey *ecdsa.PrivateKey // one for all nodes: keys are expensive to make, and these protect nothing
	valid   time.Time

	mu    sync.Mutex
	certs map[string]*tls.Certificate
}

// NewAuthority makes a certificate authority that is valid from five years
// before now to five years after it.
func NewAuthority(now time.Time) (*Authority, error) {
	a := &Authority{certs: map[string]*tls.Certificate{}, valid: now}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make authority's key: %w", err)
	}
	if a.nodeKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("make nodes' key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weir-simulate"},
		NotBefore: now.AddDate(-5, 0, 0), NotAfter: now.AddDate(5, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make authority's certificate: %w", err)
	}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read authority's certificate: %w", err)
	}
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a, nil
}

// PEM returns the authority's certificate, which clients trust.
func (a *Authority) PEM() []byte { return a.pem }

// Certificate returns the node's serving certificate.
func (a *Authority) Certificate(n *Node) (*tls.Certificate, error) {
	return a.shown(n, nil, NoStyle)
}

// ServerCertificate returns a certificate for a host that is not a node. host
// is a name or an address.
func (a *Authority) ServerCertificate(host string) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(0x5e12e12), Subject: pkix.Name{CommonName: host},
		NotBefore: a.valid.AddDate(-1, 0, 0), NotAfter: a.valid.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.root, &a.nodeKey.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("make certificate of %s: %w", host, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.root.Raw}, PrivateKey: a.nodeKey}, nil
}

// shown returns the certificate that the server at n's address presents: that
// of n, or that of the node that answers instead of it. wrong says what is
// wrong with it.
func (a *Authority) shown(n, as *Node, wrong Style) (*tls.Certificate, error) {
	if as == nil {
		as = n
	}
	which := fmt.Sprintf("%s at %s %v", as.Name, n.Name, wrong)
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.certs[which]; c != nil {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.certs)) + 2),
		Subject:      pkix.Name{CommonName: "system:node:" + as.Name, Organization: []string{"system:nodes"}},
		NotBefore:    a.valid.AddDate(-1, 0, 0), NotAfter: a.valid.AddDate(1, 0, 0),
		DNSNames: []string{as.Name}, IPAddresses: []net.IP{n.Address.AsSlice()},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	parent, key, chain := a.root, a.key, [][]byte{a.root.Raw}
	switch wrong {
	case SelfSigned:
		parent, key, chain = template, a.nodeKey, nil
	case WrongName:
		template.DNSNames, template.IPAddresses = []string{"localhost"}, nil
	case Expired:
		template.NotBefore, template.NotAfter = a.valid.AddDate(-2, 0, 0), a.valid.AddDate(-1, 0, 0)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &a.nodeKey.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate of %s: %w", n.Name, err)
	}
	c := &tls.Certificate{Certificate: append([][]byte{der}, chain...), PrivateKey: a.nodeKey}
	a.certs[which] = c
	return c, nil
}
