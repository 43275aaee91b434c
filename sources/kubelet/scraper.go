package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Scraper holds what the reads of all nodes share. Its methods may be called by
// several goroutines at once.
type Scraper struct {
	opts   Options
	static []Target // nil: the nodes of the cluster

	client    *http.Client // adds the credentials of opts.Identity, if it is used
	transport *http.Transport
	token     token
	pair      *keyPair // nil without a client certificate
	slots     chan struct{}
	buffers   sync.Pool // of *buffer
}

// How the shared connections are kept.
const (
	// idleTimeout is longer than the intervals weir is meant for, so that a
	// node keeps its connection from read to read.
	idleTimeout = 3 * time.Minute
	keepAlive   = 30 * time.Second
)

// New returns a Scraper. It reads the CA, credentials and list of targets that
// opts names, and fails if it cannot; it connects to nobody.
func New(opts Options) (*Scraper, error) {
	opts = opts.withDefaults().inCluster(exists)
	if err := opts.validate(); err != nil {
		return nil, err
	}
	s := &Scraper{opts: opts, slots: make(chan struct{}, opts.MaxConcurrent)}
	s.buffers.New = func() any { return new(buffer) }
	if len(opts.Targets) > 0 {
		targets, err := ParseTargets(opts.Targets, opts.port())
		if err != nil {
			return nil, err
		}
		s.static = targets
	}
	s.token.mu.file.path = opts.TokenFile
	if _, err := s.token.authorization(); err != nil {
		return nil, err
	}
	tlsConfig, err := s.tls()
	if err != nil {
		return nil, err
	}
	s.transport = &http.Transport{
		DialContext:     (&net.Dialer{KeepAlive: keepAlive}).DialContext,
		TLSClientConfig: tlsConfig,
		// HTTP/1.1: one read at a time needs no streams, and thousands of
		// connections are lighter so.
		ForceAttemptHTTP2:   false,
		DisableCompression:  true, // Node asks for gzip and unpacks within bounds
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     idleTimeout,
	}
	client, err := s.identified()
	if err != nil {
		return nil, err
	}
	s.client = &http.Client{
		Transport: client,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return s, nil
}

// tls returns the configuration of connections.
func (s *Scraper) tls() (*tls.Config, error) {
	pool, err := loadCA(s.opts.CAFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            pool,
		InsecureSkipVerify: s.opts.Insecure,
	}
	if s.opts.Identity != nil {
		if err := s.identify(config); err != nil {
			return nil, err
		}
	}
	if s.opts.CertFile == "" {
		return config, nil
	}
	s.pair = new(keyPair)
	s.pair.mu.cert.path, s.pair.mu.key.path = s.opts.CertFile, s.opts.KeyFile
	if _, _, err := s.pair.load(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, _, err := s.pair.load()
		return pair, err
	}
	return config, nil
}

// authorize puts our credentials into a request.
func (s *Scraper) authorize(req *http.Request) error {
	header, err := s.token.authorization()
	if err != nil {
		return err
	}
	if header != "" {
		req.Header.Set("Authorization", header)
	}
	if s.pair == nil {
		return nil
	}
	_, changed, err := s.pair.load()
	if changed {
		// Connections keep the certificate they were made with.
		s.transport.CloseIdleConnections()
	}
	return err
}

// enter waits for a free slot, and leave gives it back.
func (s *Scraper) enter(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for one of %d concurrent reads: %w", cap(s.slots), context.Cause(ctx))
	}
}

func (s *Scraper) leave() { <-s.slots }

// Close closes the connections that are not in use.
func (s *Scraper) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// request says which read a payload belongs to.
func (s *Scraper) request(t *Target, began, ended time.Time) payload.Request {
	r := payload.Request{
		Node: t.Node, Expect: t.Node,
		Received:   payload.Middle(began, ended),
		MaxSamples: s.opts.MaxSamples,
	}
	if t.Guessed {
		r.Expect = ""
	}
	return r
}
