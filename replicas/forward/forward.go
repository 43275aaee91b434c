// Package forward makes several replicas answer as one.
//
// Each replica measures for itself, at moments of its own, so two answers from
// two replicas can differ, and the later one can have the earlier timestamp. A
// replica that is not the leader therefore hands reads on to the leader, after
// it has authenticated and authorized the reader itself: only the path, the
// query and what encodings are accepted travel on, under the replica's own
// credentials. When the leader cannot be reached in time, does not answer, or has
// not what is asked for (it may be of another version), the replica answers from
// what it has measured; it is warm.
//
// A request is handed on once at most: the header says that it was.
package forward

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// Header marks a request that was handed on. The replica that receives it
// answers it itself, so a client may set it to ask one replica for its own answer.
const Header = "Weir-Forwarded"

// Options configure New.
type Options struct {
	// Leader returns where the leader is and how to call it, or that this
	// process is the leader or knows none. Required.
	Leader func() (url string, transport http.RoundTripper, self bool)
	// Timeout is how long the leader may take to begin its answer; 1s if 0.
	Timeout time.Duration
	// Pause is how long a leader that could not be reached is not asked again,
	// so that each of many requests need not wait for it; 1s if 0.
	Pause time.Duration
	// Logger logs when the leader cannot be reached or refuses, at most once a
	// minute; the zero Logger drops it.
	Logger logr.Logger
}

// forwardedHeaders are the headers that are handed on: those that decide what the answer
// looks like. Who asks is known here, and nobody else's affair.
var forwardedHeaders = []string{"Accept", "Accept-Encoding"}

// maxForwardedBytes is how many bytes of a request's line and kept headers are handed on.
// More than that is no ordinary read, and the leader, which sees credentials
// beside it, might not take what this replica took.
const maxForwardedBytes = 64 << 10

// New returns what wraps a handler of reads. Only GET is handed on.
func New(o Options) func(http.Handler) http.Handler {
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	if o.Logger.GetSink() == nil {
		o.Logger = logr.Discard()
	}
	return func(next http.Handler) http.Handler { return &forwarder{opts: o, next: next} }
}

type forwarder struct {
	opts        Options
	next        http.Handler
	unreachable atomic.Pointer[unreachableLeader]
	lastLogged  atomic.Pointer[time.Time] // when a failure was last logged
}

// unreachableLeader is a leader that could not be reached.
type unreachableLeader struct {
	url   string
	until time.Time
}

// ServeHTTP is part of http.Handler.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.Header.Get(Header) != "" || forwardedSize(r) > maxForwardedBytes {
		f.next.ServeHTTP(w, r)
		return
	}
	leader, transport, self := f.opts.Leader()
	if l := f.unreachable.Load(); self || l != nil && l.url == leader && time.Now().Before(l.until) {
		f.next.ServeHTTP(w, r)
		return
	}
	target, err := url.Parse(leader)
	if err != nil || target.Host == "" {
		f.next.ServeHTTP(w, r)
		return
	}
	f.forward(w, r, target, transport)
}

// forwardedSize returns how many bytes of r would be handed on.
func forwardedSize(r *http.Request) int {
	n := len(r.RequestURI)
	for _, name := range forwardedHeaders {
		for _, value := range r.Header.Values(name) {
			n += len(value)
		}
	}
	return n
}

// forwardedRequest returns r as it is handed on.
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

// leaderStatus is an answer of the leader that is none to the reader's question.
type leaderStatus int

func (e leaderStatus) Error() string {
	return fmt.Sprintf("the leader answered with status %d", int(e))
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
		ErrorLog:  log.New(discardLog{}, "", 0), // a reader that goes away is no news
		ModifyResponse: func(response *http.Response) error {
			if !slow.Stop() {
				return errTimeout
			}
			switch code := response.StatusCode; {
			case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound,
				code == http.StatusTooManyRequests, code >= 500:
				// Not found may be an API that a leader of another version has not.
				return leaderStatus(code)
			}
			for name := range w.Header() {
				if name != "Warning" { // of these there may be several
					response.Header.Del(name) // this replica has said it already
				}
			}
			return nil
		},
		// Nothing is written yet when this is called.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if r.Context().Err() != nil {
				return // it is the reader who has gone
			}
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			f.leaderFailed(target.String(), err)
			f.next.ServeHTTP(w, r)
		},
	}
	proxy.ServeHTTP(w, forwardedRequest(ctx, r))
}

// leaderFailed notes why the leader did not answer.
func (f *forwarder) leaderFailed(leader string, err error) {
	now := time.Now()
	message := "the leader cannot be reached; this replica answers the request itself"
	var answer leaderStatus
	switch {
	case !errors.As(err, &answer):
		f.unreachable.Store(&unreachableLeader{leader, now.Add(f.opts.Pause)})
	case answer == http.StatusUnauthorized, answer == http.StatusForbidden:
		message = "the leader refused this replica; its service account needs every right that readers have; this replica answers the request itself"
	default:
		return // a busy leader, or one that is not warm: no news
	}
	if said := f.lastLogged.Load(); said == nil || now.Sub(*said) > time.Minute {
		f.lastLogged.Store(&now)
		f.opts.Logger.Info(message, "leader", leader, "cause", err.Error())
	}
}

type discardLog struct{}

func (discardLog) Write(b []byte) (int, error) { return len(b), nil }
