//go:build linux

package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// pki is the folder of a cluster's keys and certificates: NAME.key and
// NAME.crt.
type pki string

// subject is the subject of a certificate. With hosts or addresses it is a
// server's, otherwise a client's.
type subject struct {
	name   string
	groups []string
	hosts  []string
	ips    []netip.Addr
}

const lifetime = 365 * 24 * time.Hour

// authority creates a certificate authority.
func (p pki) authority(file, name string) error {
	c, err := template(subject{name: name})
	if err != nil {
		return err
	}
	c.IsCA = true
	c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	c.ExtKeyUsage = nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	pair, err := sign(c, c, key, key)
	if err != nil {
		return fmt.Errorf("make authority %s: %w", file, err)
	}
	return p.write(file, pair)
}

// issue writes a new key and a certificate signed by an authority.
func (p pki) issue(file, authority string, s subject) error {
	pair, err := p.pair(authority, s)
	if err != nil {
		return err
	}
	return p.write(file, pair)
}

// A pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

// pair returns a new key and a certificate signed by an authority.
func (p pki) pair(authority string, s subject) (pair, error) {
	c, err := template(s)
	if err != nil {
		return pair{}, err
	}
	ca, caKey, err := p.read(authority)
	if err != nil {
		return pair{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("make key: %w", err)
	}
	signed, err := sign(c, ca, key, caKey)
	if err != nil {
		return pair{}, fmt.Errorf("certify %s: %w", s.name, err)
	}
	return signed, nil
}

func sign(c, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := encodeKey(key)
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// key creates a key pair without a certificate: NAME.key and NAME.pub.
func (p pki) key(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	return errors.Join(
		p.writeFile(file+".key", private),
		p.writeFile(file+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

func template(s subject) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: s.name, Organization: s.groups},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              s.hosts,
	}
	for _, ip := range s.ips {
		c.IPAddresses = append(c.IPAddresses, net.IP(ip.AsSlice()))
	}
	if len(s.hosts)+len(s.ips) > 0 {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return c, nil
}

func (p pki) write(file string, signed pair) error {
	return errors.Join(p.writeFile(file+".key", signed.key), p.writeFile(file+".crt", signed.certificate))
}

func (p pki) writeFile(file string, b []byte) error {
	if err := os.WriteFile(p.path(file), b, 0o600); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}

func (p pki) read(file string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	crt, err := p.readPEM(file + ".crt")
	if err != nil {
		return nil, nil, err
	}
	c, err := x509.ParseCertificate(crt)
	if err != nil {
		return nil, nil, fmt.Errorf("read certificate %s: %w", file, err)
	}
	der, err := p.readPEM(file + ".key")
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read key %s: %w", file, err)
	}
	k, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("read key %s: it is a %T", file, key)
	}
	return c, k, nil
}

func (p pki) readPEM(file string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(string(p), file))
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, errors.New("read certificate: " + file + " is not PEM")
	}
	return block.Bytes, nil
}

// path returns the path of a file.
func (p pki) path(file string) string { return filepath.Join(string(p), file) }
