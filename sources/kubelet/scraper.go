package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/fetch"
	"github.com/weir-metrics/weir/sources/kubelet/payload"
)

// Scraper holds what the reads of all nodes share. Its methods may be called by
// several goroutines at once.
type Scraper struct {
	opts   Options
	static []Target // nil: the nodes of the cluster

	carrier   http.RoundTripper // transport, with the credentials of opts.Identity if they are used
	transport *fetch.Transport
	token     token
	pair      *keyPair // nil without a client certificate
	slots     chan struct{}
	buffers   sync.Pool // of *buffer
	rooms     sync.Pool // of the parsers of /metrics/resource

	found struct { // what Targets returned last
		sync.Mutex
		by      *metric.Facts
		targets []Target // never nil once they were looked for
	}
}

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
	s.token.gzip, s.token.mu.file.path = opts.Gzip, opts.TokenFile
	if _, err := s.token.header(); err != nil {
		return nil, err
	}
	tlsConfig, err := s.tls()
	if err != nil {
		return nil, err
	}
	s.transport = fetch.New(fetch.Options{TLS: tlsConfig, MaxIdle: opts.MaxIdle})
	if s.carrier, err = s.identified(); err != nil {
		return nil, err
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

// header returns the header fields of a request, our credentials among them. Nobody
// may write to it.
func (s *Scraper) header() (http.Header, error) {
	header, err := s.token.header()
	if err != nil || s.pair == nil {
		return header, err
	}
	_, changed, err := s.pair.load()
	if changed {
		// Connections keep the certificate they were made with.
		s.transport.CloseIdleConnections()
	}
	return header, err
}

// enter waits for a free slot, and leave gives it back.
func (s *Scraper) enter(ctx context.Context) error {
	select { // Fast path: nobody need know when ctx ends
	case s.slots <- struct{}{}:
		return nil
	default:
	}
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
