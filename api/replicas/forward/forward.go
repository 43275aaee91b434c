// Package forward makes several replicas answer as one.
//
// Each replica reads nodes at its own times, so the answers of two replicas can differ, and the
// later one can have the earlier timestamp. Therefore a replica that is not the leader forwards
// reads to the leader, after it has authenticated and authorized the client. It sends only the
// path, the query and the accepted encodings, with its own credentials. If the leader does not
// answer in time, or does not have what the client asks for (its version may differ), the replica
// answers from its own numbers.
//
// A request is forwarded at most once: a header marks it.
package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// Header marks a forwarded request. The replica that receives it answers it itself, so a client
// may set it to get the answer of one replica.
const Header = "Weir-Forwarded"

// Options configure New.
type Options struct {
	// Leader returns the URL of the leader and the transport to it. self is true if this process is
	// the leader, or if no leader is known. Required.
	Leader func() (url string, transport http.RoundTripper, self bool)
	// Timeout is how long the leader may take to begin its answer; 1s if 0.
	Timeout time.Duration
	// Pause is how long a replica does not try a leader again that it could not reach, so that not
	// every request waits for it; 1s if 0.
	Pause time.Duration
	// Logger logs when the leader cannot be reached or refuses, at most once a minute. The zero
	// Logger discards it.
	Logger logr.Logger
}

// forwardedHeaders are the headers that are forwarded: those that decide the form of the answer.
var forwardedHeaders = []string{"Accept", "Accept-Encoding"}

// maxForwardedBytes limits the request line and the forwarded headers. The leader also receives
// credentials with them, so it might refuse a larger request that this replica accepted.
const maxForwardedBytes = 64 << 10

// New returns a wrapper for a handler of reads. Only GET is forwarded.
func New(o Options) func(http.Handler) http.Handler {
	o.Timeout, o.Pause = cmp.Or(o.Timeout, time.Second), cmp.Or(o.Pause, time.Second)
	return func(next http.Handler) http.Handler { return &forwarder{opts: o, next: next} }
}

type forwarder struct {
	opts Options
	next http.Handler
	// unreachable is a leader that could not be reached. slow and slowForOthers are leaders that did not begin an answer in
	// time: see slowLeader.
	unreachable, slow, slowForOthers atomic.Pointer[unreachableLeader]
	lastLogged                       atomic.Pointer[time.Time] // when a failure was last logged
}

// slowLeader returns where a slow leader is kept for a request. A leader that waits for adapters and Prometheus servers,
// which answer custom and external metrics, has the numbers of nodes and pods nevertheless.
func (f *forwarder) slowLeader(r *http.Request) *atomic.Pointer[unreachableLeader] {
	for _, group := range []string{"custom.metrics.k8s.io", "external.metrics.k8s.io"} {
		if strings.HasPrefix(r.URL.Path, "/apis/"+group+"/") {
			return &f.slowForOthers
		}
	}
	return &f.slow
}

// avoid reports whether a leader is not tried again yet.
func avoid(l *unreachableLeader, leader string) bool {
	return l != nil && l.url == leader && time.Now().Before(l.until)
}

// unreachableLeader is a leader that is not tried until a time.
type unreachableLeader struct {
	url   string
	until time.Time
}

// ServeHTTP implements http.Handler.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Header.Get(Header) != "" || forwardedSize(r) > maxForwardedBytes {
		f.next.ServeHTTP(w, r)
		return
	}
	leader, transport, self := f.opts.Leader()
	target, err := url.Parse(leader)
	if self || err != nil || target.Host == "" || avoid(f.unreachable.Load(), leader) || avoid(f.slowLeader(r).Load(), leader) {
		f.next.ServeHTTP(w, r)
		return
	}
	f.forward(w, r, target, transport)
}

// forwardedSize returns how many bytes of r would be forwarded.
func forwardedSize(r *http.Request) int {
	n := len(r.RequestURI)
	for _, name := range forwardedHeaders {
		for _, value := range r.Header.Values(name) {
			n += len(value)
		}
	}
	return n
}

// forwardedRequest returns the request that is sent to the leader.
func forwardedRequest(ctx context.Context, r *http.Request) *http.Request {
	out := r.WithContext(ctx)
	out.Header = http.Header{Header: {"1"}}
	for _, name := range forwardedHeaders {
		if values := r.Header.Values(name); len(values) > 0 {
			out.Header[name] = values
		}
	}
	out.Body, out.ContentLength = http.NoBody, 0
	return out
}

// leaderStatus is a status of the leader that is not an answer for the client.
type leaderStatus int

func (l leaderStatus) Error() string {
	return fmt.Sprintf("the leader answered with status %d", int(l))
}

var errTimeout = errors.New("the leader does not answer in time")

func (f *forwarder) forward(w http.ResponseWriter, r *http.Request, target *url.URL, transport http.RoundTripper) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	slow := time.AfterFunc(f.opts.Timeout, func() { cancel(errTimeout) })
	defer slow.Stop()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = target.Scheme, target.Host, ""
			p.Out.URL.RawQuery = p.In.URL.RawQuery
		},
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // a client that goes away is not logged
		ModifyResponse: func(response *http.Response) error {
			if !slow.Stop() {
				return errTimeout
			}
			switch code := response.StatusCode; {
			case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
				code == http.StatusTooManyRequests, code >= 500:
				// Not found: a leader of another version may not have the API.
				return leaderStatus(code)
			}
			for name := range w.Header() {
				if name != "Warning" { // an answer may have several warnings
					response.Header.Del(name) // this replica has set it already
				}
			}
			return nil
		},
		// When this is called, nothing is written yet.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the client has gone
			}
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			f.leaderFailed(r, target.String(), err)
			f.next.ServeHTTP(w, r)
		},
	}
	proxy.ServeHTTP(w, forwardedRequest(ctx, r))
}

// leaderFailed records and logs why the leader did not answer.
func (f *forwarder) leaderFailed(r *http.Request, leader string, err error) {
	now := time.Now()
	message := "the leader cannot be reached; this replica answers the request itself"
	var answer leaderStatus
	switch {
	case errors.Is(err, errTimeout):
		message = "the leader is slow; this replica answers the request itself"
		f.slowLeader(r).Store(&unreachableLeader{leader, now.Add(f.opts.Pause)})
	case !errors.As(err, &answer):
		f.unreachable.Store(&unreachableLeader{leader, now.Add(f.opts.Pause)})
	case answer == http.StatusUnauthorized, answer == http.StatusForbidden:
		message = "the leader refused this replica; its service account needs every right that readers have; this replica answers the request itself"
	default:
		return // the leader is busy, or does not have all numbers yet
	}
	if last := f.lastLogged.Load(); last == nil || now.Sub(*last) > time.Minute {
		f.lastLogged.Store(&now)
		f.opts.Logger.Info(message, "leader", leader, "cause", err.Error())
	}
}
