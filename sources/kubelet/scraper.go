package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/sources/kubelet/fetch"
)

// Scraper has what the reads of all nodes share. Several goroutines may call its methods at once.
type Scraper struct {
	opts   Options
	static []Target // nil means the nodes of the cluster

	transport    *fetch.Transport
	roundTripper http.RoundTripper            // transport, with the credentials of opts.Identity if they are used
	headers      *fileCache[http.Header]      // the header of requests, without a token of opts.Token
	tokenHeader  atomic.Pointer[tokenHeader]  // the last header with a token of opts.Token
	ca           *fileCache[*x509.CertPool]   // the certificates that verify kubelets; nil without a file of them
	pair         *fileCache[*tls.Certificate] // nil without a client certificate
	buffers      sync.Pool                    // *buffer
	budget       *memoryBudget                // of buffers beyond smallBytes each, of all reads
	parserMemory sync.Pool                    // memory of the parsers of /metrics/resource

	facts atomic.Pointer[cluster.Facts] // the last ones that Targets was given

	lastTargets struct { // the last result of Targets
		sync.Mutex
		facts   *cluster.Facts
		targets []Target // nil before the first call
	}
}

// New returns a Scraper. It reads the files of the CA, credentials and targets that opts names. It
// opens no connection.
func New(opts Options) (*Scraper, error) {
	opts = opts.withDefaults().withServiceAccount(exists)
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Scraper{
		opts:    opts,
		headers: newHeaderCache(opts.TokenFile, opts.Gzip), budget: newBudget(max(maxLargeBytes, 4*opts.MaxBytes)),
	}
	s.buffers.New = func() any { return new(buffer) }
	if len(opts.Targets) > 0 {
		targets, err := ParseTargets(opts.Targets, opts.port())
		if err != nil {
			return nil, err
		}
		s.static = targets
	}
	if _, err := s.header(); err != nil {
		return nil, err
	}
	tlsConfig, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	s.transport = fetch.New(tlsConfig, opts.MaxIdle)
	if s.ca != nil {
		s.transport.RootCAs = s.rootCAs
	}
	if s.roundTripper, err = s.withIdentity(); err != nil {
		return nil, err
	}
	return s, nil
}

// tlsConfig returns the TLS configuration of connections.
func (s *Scraper) tlsConfig() (*tls.Config, error) {
	caFile := s.opts.CAFile
	if identity := s.opts.Identity; caFile == "" && !s.opts.Insecure && identity != nil && len(identity.TLS.CAData) == 0 {
		caFile = identity.TLS.CAFile
	}
	var pool *x509.CertPool // nil means the system's certificates
	if caFile != "" {
		s.ca = newCACache(caFile)
		var err error
		if pool, _, err = s.ca.get(); err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            pool,
		InsecureSkipVerify: s.opts.Insecure,
	}
	if s.opts.Identity != nil {
		if err := s.applyIdentity(config); err != nil {
			return nil, err
		}
	}
	if s.opts.CertFile == "" {
		return config, nil
	}
	s.pair = newKeyPairCache(s.opts.CertFile, s.opts.KeyFile)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, _, err := s.clientCertificate()
		return pair, err
	}
	if _, err := config.GetClientCertificate(nil); err != nil {
		return nil, err
	}
	return config, nil
}

// header returns the header of a request with the credentials of files. The caller must not change
// it.
func (s *Scraper) header() (http.Header, error) {
	header, _, err := s.headers.get()
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	if s.ca != nil {
		s.rootCAs()
	}
	if s.pair == nil {
		return header, nil
	}
	_, changed, err := s.clientCertificate()
	if changed {
		// Open connections still use the old certificate.
		s.transport.CloseIdleConnections()
	}
	return header, err
}

// rootCAs returns the certificates that verify kubelets.
func (s *Scraper) rootCAs() *x509.CertPool {
	pool, changed, _ := s.ca.get() // New has loaded it, so there is no error
	if changed {
		// Open connections were verified with the old certificates.
		s.transport.CloseIdleConnections()
	}
	return pool
}

// clientCertificate returns weir's certificate, and whether it has changed since the last call.
func (s *Scraper) clientCertificate() (pair *tls.Certificate, changed bool, err error) {
	if pair, changed, err = s.pair.get(); err != nil {
		return nil, false, fmt.Errorf("read client certificate: %w", err)
	}
	return pair, changed, nil
}

// Close closes the idle connections.
func (s *Scraper) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}
