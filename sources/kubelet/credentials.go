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

// Where a cluster puts a pod's credentials.
const (
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	inClusterToken = serviceAccount + "/token"
	inClusterCA    = serviceAccount + "/ca.crt"
)

// inCluster fills in a pod's own credentials where there are files and nothing
// else was given. exists tells whether a file is there.
func (o Options) inCluster(exists func(path string) bool) Options {
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

// loadCA returns the certificates in a file, or nil for the system's if path is
// empty.
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
		return nil, fmt.Errorf("read CA: %s holds no certificate in PEM form", path)
	}
	return pool, nil
}

// identify takes over from opts.Identity what the files leave open: whom to
// trust, and our certificate.
func (s *Scraper) identify(config *tls.Config) error {
	identity, err := transport.TLSConfigFor(s.opts.Identity)
	if err != nil {
		return fmt.Errorf("use the kubeconfig's credentials for kubelets: %w", err)
	}
	if identity == nil {
		return nil // it says nothing of TLS
	}
	if s.opts.CAFile == "" && !s.opts.Insecure {
		config.RootCAs = identity.RootCAs
	}
	if s.opts.CertFile == "" && s.opts.TokenFile == "" {
		config.GetClientCertificate = identity.GetClientCertificate
	}
	return nil
}

// identified returns the transport that adds to each request what opts.Identity
// says of us, unless files do.
func (s *Scraper) identified() (http.RoundTripper, error) {
	if s.opts.Identity == nil || s.opts.CertFile != "" || s.opts.TokenFile != "" {
		return s.transport, nil
	}
	rt, err := transport.HTTPWrappersForConfig(s.opts.Identity, s.transport)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig's credentials for kubelets: %w", err)
	}
	return rt, nil
}

// watched is a file that is read again when it changes.
type watched struct {
	path string
	seen os.FileInfo // when it was last read
}

// changed reports whether the file differs from when it was last read, and
// returns what it is now.
func (w *watched) changed() (now os.FileInfo, changed bool, err error) {
	now, err = os.Stat(w.path)
	if err != nil {
		return nil, false, err
	}
	return now, w.seen == nil || !os.SameFile(now, w.seen) || now.ModTime() != w.seen.ModTime() || now.Size() != w.seen.Size(), nil
}

// token is a bearer token that follows its file, in a header.
type token struct {
	gzip bool // the header asks for compressed answers
	mu   struct {
		sync.Mutex
		file   watched
		header http.Header // with the token last read; nil before the first
	}
}

// header returns what to send; without a token if there is no file. A file that
// cannot be read keeps the token it last held. Nobody may write to the header.
func (t *token) header() (http.Header, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &t.mu.file
	if f.path == "" {
		if t.mu.header == nil {
			t.mu.header = t.with("")
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
				t.mu.header, f.seen = t.with("Bearer "+string(raw)), now
			}
		}
	}
	if err != nil && t.mu.header == nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	return t.mu.header, nil
}

// with returns the header of requests; authorization may be empty.
func (t *token) with(authorization string) http.Header {
	h := http.Header{"Accept-Encoding": {"identity"}}
	if t.gzip {
		h.Set("Accept-Encoding", "gzip")
	}
	if authorization != "" {
		h.Set("Authorization", authorization)
	}
	return h
}

// keyPair is a client certificate that follows its files.
type keyPair struct {
	mu struct {
		sync.Mutex
		cert, key watched
		pair      *tls.Certificate
	}
}

// load returns the certificate, and whether it has changed since the last time.
// Files that cannot be read, or do not fit together because one of them is being
// replaced, keep the certificate they last held.
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
