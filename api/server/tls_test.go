package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/server"
)

// shows returns the certificate that a client gets when it asks for name.
func shows(t *testing.T, address, name string) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, ServerName: name})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}

func TestCertificateIsReplacedWithoutRestart(t *testing.T) {
	c, signer, dir := newCluster(t), newAuthority(t, "serving"), t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	put := func(serial int64) {
		cert, key := signer.sign(t, "localhost", serial)
		// Replace the files as a kubelet replaces those of a Secret: at once, under the same names.
		write(t, certFile+".new", cert)
		write(t, keyFile+".new", key)
		for _, name := range []string{keyFile, certFile} {
			if err := os.Rename(name+".new", name); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(1001)
	r := start(t, c, func(o *server.Options, _ *server.Config) {
		o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile = certFile, keyFile
	}, nil)
	if got := shows(t, r.Address(), "localhost").SerialNumber.Int64(); got != 1001 {
		t.Fatalf("serial number %d, want 1001", got)
	}
	put(1002)
	until(t, "the new certificate is shown", func() bool { return shows(t, r.Address(), "localhost").SerialNumber.Int64() == 1002 })
	if got := r.get(t, "/livez", nil); got.code != 200 {
		t.Errorf("GET /livez = %d after the replacement", got.code)
	}
}

func TestCertificateIsMadeInCertDir(t *testing.T) {
	c, dir := newCluster(t), t.TempDir()
	r := start(t, c, func(o *server.Options, _ *server.Config) { o.SecureServing.ServerCert.CertDirectory = dir }, nil)
	pem, err := os.ReadFile(filepath.Join(dir, "weir.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}, DisableKeepAlives: true}}
	resp, err := client.Get("https://" + r.Address() + "/livez")
	if err != nil {
		t.Fatalf("with the certificate from the directory: %v", err)
	}
	resp.Body.Close()
}

func TestOldTLSIsRefused(t *testing.T) {
	r := start(t, newCluster(t), nil, nil)
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", r.Address(), &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if (err == nil) != want {
			t.Errorf("%s: %v, want it to work: %t", tls.VersionName(version), err, want)
		}
		if err == nil {
			c.Close()
		}
	}
}

// Only clients that ask for the certificate for peers get it.
func TestPeerCertificate(t *testing.T) {
	known, err := peer.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, newCluster(t), func(_ *server.Options, c *server.Config) { c.Peer = known }, nil)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(known.PEM())
	if _, err := shows(t, r.Address(), peer.Name).Verify(x509.VerifyOptions{Roots: roots, DNSName: peer.Name}); err != nil {
		t.Errorf("as %s: %v", peer.Name, err)
	}
	if _, err := shows(t, r.Address(), "localhost").Verify(x509.VerifyOptions{Roots: roots}); err == nil {
		t.Error("everyone is shown the certificate for peers")
	}
}
