package kubelet

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"

	"k8s.io/client-go/transport"
)

// The paths of a pod's service account.
const (
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	inClusterToken = serviceAccount + "/token"
	inClusterCA    = serviceAccount + "/ca.crt"
)

// withServiceAccount sets the files of the pod's service account, if they exist and the options set
// no others. It removes the credentials that the options do not allow for.
func (o Options) withServiceAccount(exists func(path string) bool) Options {
	if o.Scheme != "https" || o.Endpoint == Standalone { // no kubelet: it could use the token elsewhere
		o.Identity, o.Token = nil, nil
		return o
	}
	ownFiles := o.TokenFile != "" || o.CertFile != ""
	if ownFiles || len(o.Targets) > 0 { // an entry of a list can be any address
		o.Token = nil
	}
	if o.Identity != nil {
		return o
	}
	if !ownFiles && o.Token == nil && len(o.Targets) == 0 && exists(inClusterToken) {
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

// applyIdentity sets the CA and the client certificate of opts.Identity where no file option sets
// them.
func (s *Scraper) applyIdentity(config *tls.Config) error {
	identity, err := transport.TLSConfigFor(s.opts.Identity)
	if err != nil {
		return fmt.Errorf("use the kubeconfig's credentials for kubelets: %w", err)
	}
	if identity == nil {
		return nil // the identity has no TLS settings
	}
	if s.opts.CAFile == "" && !s.opts.Insecure {
		config.RootCAs = identity.RootCAs
	}
	if s.opts.CertFile == "" && s.opts.TokenFile == "" && s.opts.Token == nil {
		config.GetClientCertificate = identity.GetClientCertificate
	}
	return nil
}

// withIdentity returns the transport that adds the credentials of opts.Identity to each
// request, unless a file option or opts.Token sets credentials.
func (s *Scraper) withIdentity() (http.RoundTripper, error) {
	if s.opts.Identity == nil || s.opts.CertFile != "" || s.opts.TokenFile != "" || s.opts.Token != nil {
		return s.transport, nil
	}
	rt, err := transport.HTTPWrappersForConfig(s.opts.Identity, s.transport)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig's credentials for kubelets: %w", err)
	}
	return rt, nil
}

// fileCache keeps a value that was loaded from files, and loads it again when a file changes. If a
// file cannot be read any more, or two files do not match because one is being replaced, the last
// good value stays in use.
type fileCache[T any] struct {
	paths []string
	load  func() (T, error)
	mu    struct {
		sync.Mutex
		loaded bool
		seen   []os.FileInfo // the files when value was loaded
		value  T
	}
}

// get returns the value, and whether it has changed since the last call.
func (c *fileCache[T]) get() (value T, changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := make([]os.FileInfo, len(c.paths))
	for i, path := range c.paths {
		if now[i], err = os.Stat(path); err != nil {
			break
		}
	}
	if err == nil && !(c.mu.loaded && slices.EqualFunc(now, c.mu.seen, sameFile)) {
		if value, err = c.load(); err == nil {
			changed = c.mu.loaded
			c.mu.loaded, c.mu.seen, c.mu.value = true, now, value
		}
	}
	if !c.mu.loaded {
		return value, false, err
	}
	return c.mu.value, changed, nil
}

// sameFile reports whether a file has not changed.
func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// newHeaderCache returns a cache of the header of requests. The header has the bearer token in a
// file if path is not empty. It must not be changed.
func newHeaderCache(path string, gzip bool) *fileCache[http.Header] {
	header := http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"weir"}}
	if gzip {
		header.Set("Accept-Encoding", "gzip")
	}
	if path == "" {
		return &fileCache[http.Header]{load: func() (http.Header, error) { return header, nil }}
	}
	return &fileCache[http.Header]{paths: []string{path}, load: func() (http.Header, error) {
		token, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if token = bytes.TrimSpace(token); len(token) == 0 {
			return nil, errors.New(path + " is empty")
		}
		return withToken(header, string(token)), nil
	}}
}

// withToken returns a copy of header that has the bearer token.
func withToken(header http.Header, token string) http.Header {
	header = header.Clone()
	header.Set("Authorization", "Bearer "+token)
	return header
}

// tokenHeader is the header of requests with a token of opts.Token.
type tokenHeader struct {
	token  string
	header http.Header
}

// requestHeader returns the header of a request with weir's credentials. The caller must not change
// it.
func (s *Scraper) requestHeader(ctx context.Context) (http.Header, error) {
	header, err := s.header()
	if err != nil || s.opts.Token == nil {
		return header, err
	}
	token, err := s.opts.Token(ctx)
	if err != nil {
		return nil, err
	}
	last := s.tokenHeader.Load()
	if last == nil || last.token != token {
		last = &tokenHeader{token, withToken(header, token)}
		s.tokenHeader.Store(last)
	}
	return last.header, nil
}

func newCACache(path string) *fileCache[*x509.CertPool] {
	return &fileCache[*x509.CertPool]{paths: []string{path}, load: func() (*x509.CertPool, error) {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New(path + " has no certificate in PEM format")
		}
		return pool, nil
	}}
}

func newKeyPairCache(cert, key string) *fileCache[*tls.Certificate] {
	return &fileCache[*tls.Certificate]{paths: []string{cert, key}, load: func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}}
}
