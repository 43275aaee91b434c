package kubelet

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"k8s.io/client-go/transport"
)

// The files of a pod's service account.
const (
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	inClusterToken = serviceAccount + "/token"
	inClusterCA    = serviceAccount + "/ca.crt"
)

// withServiceAccount fills in the files of the pod's service account if they exist and the options
// name no others.
func (o Options) withServiceAccount(exists func(path string) bool) Options {
	if o.Scheme != "https" {
		o.Identity = nil
	}
	if o.Scheme != "https" || o.Identity != nil {
		return o
	}
	if o.TokenFile == "" && o.CertFile == "" && exists(inClusterToken) {
		o.TokenFile = inClusterToken
	}
	if o.CAFile == "" && !o.Insecure && exists(inClusterCA) {
		o.CAFile = inClusterCA
	}
	return o
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// loadCA returns the certificates in a file; nil, which stands for the system's, if path
// is empty.
func loadCA(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read CA: %s has no certificate in PEM format", path)
	}
	return pool, nil
}

// applyIdentity sets from opts.Identity the CA and the client certificate that no file
// option sets.
func (s *Scraper) applyIdentity(config *tls.Config) error {
	identity, err := transport.TLSConfigFor(s.opts.Identity)
	if err != nil {
		return fmt.Errorf("use the kubeconfig's credentials for kubelets: %w", err)
	}
	if identity == nil {
		return nil // it has no TLS settings
	}
	if s.opts.CAFile == "" && !s.opts.Insecure {
		config.RootCAs = identity.RootCAs
	}
	if s.opts.CertFile == "" && s.opts.TokenFile == "" {
		config.GetClientCertificate = identity.GetClientCertificate
	}
	return nil
}

// withIdentity returns the transport that adds the credentials of opts.Identity to each
// request, unless a file option sets credentials.
func (s *Scraper) withIdentity() (http.RoundTripper, error) {
	if s.opts.Identity == nil || s.opts.CertFile != "" || s.opts.TokenFile != "" {
		return s.transport, nil
	}
	rt, err := transport.HTTPWrappersForConfig(s.opts.Identity, s.transport)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig's credentials for kubelets: %w", err)
	}
	return rt, nil
}

// watchedFile is a file that is read again when it changes.
type watchedFile struct {
	path string
	seen os.FileInfo // when it was last read
}

// changed reports whether the file has changed since it was last read. It returns the file's
// present state.
func (w *watchedFile) changed() (now os.FileInfo, changed bool, err error) {
	now, err = os.Stat(w.path)
	if err != nil {
		return nil, false, err
	}
	return now, w.seen == nil || !os.SameFile(now, w.seen) || now.ModTime() != w.seen.ModTime() || now.Size() != w.seen.Size(), nil
}

// token is a bearer token from a file, as a header of requests.
type token struct {
	gzip bool // ask for compressed answers
	mu   struct {
		sync.Mutex
		file   watchedFile
		header http.Header // with the token last read; nil before the first
	}
}

// header returns the header of a request, which must not be changed. It has no token if there is no file.
// If the file cannot be read any more, the last token stays in use.
func (t *token) header() (http.Header, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.mu.file
	if f.path == "" {
		if t.mu.header == nil {
			t.mu.header = t.newHeader("")
		}
		return t.mu.header, nil
	}
	now, changed, err := f.changed()
	if err == nil && changed {
		var raw []byte
		if raw, err = os.ReadFile(f.path); err == nil {
			if raw = bytes.TrimSpace(raw); len(raw) == 0 {
				err = errors.New(f.path + " is empty")
			} else {
				t.mu.header, f.seen = t.newHeader("Bearer "+string(raw)), now
			}
		}
	}
	if err != nil && t.mu.header == nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	return t.mu.header, nil
}

// newHeader returns the header of a request; authorization may be empty.
func (t *token) newHeader(authorization string) http.Header {
	h := http.Header{"Accept-Encoding": {"identity"}}
	if t.gzip {
		h.Set("Accept-Encoding", "gzip")
	}
	if authorization != "" {
		h.Set("Authorization", authorization)
	}
	return h
}

// keyPair is a client certificate that is read again when its files change.
type keyPair struct {
	mu struct {
		sync.Mutex
		cert, key watchedFile
		pair      *tls.Certificate
	}
}

// load returns the certificate, and whether it has changed since the last call. If the
// files cannot be read any more, or do not match because one of them is being replaced, the
// last certificate stays in use.
func (k *keyPair) load() (pair *tls.Certificate, changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	cert, certChanged, err1 := k.mu.cert.changed()
	key, keyChanged, err2 := k.mu.key.changed()
	err = errors.Join(err1, err2)
	if err == nil && (certChanged || keyChanged) {
		var loaded tls.Certificate
		if loaded, err = tls.LoadX509KeyPair(k.mu.cert.path, k.mu.key.path); err == nil {
			changed = k.mu.pair != nil
			k.mu.pair, k.mu.cert.seen, k.mu.key.seen = &loaded, cert, key
		}
	}
	if err != nil && k.mu.pair == nil {
		return nil, false, fmt.Errorf("read client certificate: %w", err)
	}
	return k.mu.pair, changed, nil
}
