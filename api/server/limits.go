package server

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	apimetrics "k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// answerGrace is how much longer than the request timeout the write of an answer may take, so that
// a client still receives the message of a timeout.
const answerGrace = 2 * time.Second

// requestLimits bound what a client can make a request cost in time and bytes. The library limits
// the time for headers and for a handler, but not the time for a body to arrive or for an answer to
// be read.
type requestLimits struct {
	body    time.Duration            // for a body to arrive
	write   time.Duration            // for the answer to be written, counted from the request
	stall   time.Duration            // for the client to take the next answerChunk bytes of the answer
	bytes   int64                    // of a body
	streams func(*http.Request) bool // the requests that set their own deadlines of writing
}

// maxQuery is the maximum length of a query, in bytes. Rules read it before authentication, and a
// LIST compares each pod with its selectors.
const maxQuery = 32 << 10

func (l requestLimits) apply(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > maxQuery {
			http.Error(w, fmt.Sprintf("the query has %d bytes, at most %d are allowed: use a shorter selector", len(r.URL.RawQuery), maxQuery), http.StatusRequestURITooLong)
			return
		}
		c := http.NewResponseController(w)
		now := time.Now()
		// Only connections of tests without a network cannot have a deadline.
		_ = c.SetWriteDeadline(now.Add(l.write))
		if !l.streams(r) {
			w = responsewriter.WrapForHTTP1Or2(&stallWriter{ResponseWriter: w, to: c, stall: l.stall, end: now.Add(l.write)})
		}
		if r.ContentLength != 0 {
			_ = c.SetReadDeadline(now.Add(l.body))
			r.Body = http.MaxBytesReader(w, r.Body, l.bytes)
		}
		next.ServeHTTP(w, r)
	})
}

// answerChunk is how many bytes a client must take within the time to stall.
const answerChunk = 64 << 10

// stallWriter writes an answer in chunks, and gives it up when the client does not take a chunk in
// time. A client that reads slowly gets the whole answer until the end.
type stallWriter struct {
	http.ResponseWriter
	to    *http.ResponseController
	stall time.Duration
	end   time.Time // no write may last longer
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (s *stallWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Write implements io.Writer.
func (s *stallWriter) Write(b []byte) (written int, err error) {
	for {
		deadline := time.Now().Add(s.stall)
		if deadline.After(s.end) {
			deadline = s.end
		}
		_ = s.to.SetWriteDeadline(deadline)
		n, err := s.ResponseWriter.Write(b[:min(len(b), answerChunk)])
		written += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}

// callerLimits bound how many requests of one caller are answered at the same time, and how many of
// all callers that do not come through the cluster's API server. So one caller cannot take the
// places of all others, and several cannot take those of the API server, through which kubectl and
// the HPA controller read.
type callerLimits struct {
	perCaller, direct int
	exempt            request.LongRunningRequestCheck

	mu struct {
		sync.Mutex
		direct   int
		byCaller map[string]int // by user name; only callers with a request under way
	}
}

// newCallerLimits returns the limits of a server that answers all requests at the same time: an eighth
// for each caller, and three quarters for those that come directly.
func newCallerLimits(all int, exempt request.LongRunningRequestCheck) *callerLimits {
	l := &callerLimits{perCaller: max(all/8, 2), direct: all - all/4, exempt: exempt}
	l.mu.byCaller = map[string]int{}
	return l
}

func (l *callerLimits) apply(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		u, ok := request.UserFrom(r.Context())
		if !ok || info == nil || l.exempt(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		_, proxied := u.(proxiedUser)
		if refusal := l.enter(u.GetName(), proxied); refusal != "" {
			apimetrics.RecordDroppedRequest(r, info, apimetrics.APIServerComponent, r.Method != http.MethodGet && r.Method != http.MethodHead)
			apimetrics.RecordRequestTermination(r, info, apimetrics.APIServerComponent, http.StatusTooManyRequests)
			w.Header().Set("Retry-After", "1")
			http.Error(w, refusal, http.StatusTooManyRequests)
			return
		}
		defer l.leave(u.GetName(), proxied)
		next.ServeHTTP(w, r)
	})
}

// enter takes a place for a request, or returns why there is none.
func (l *callerLimits) enter(name string, proxied bool) (refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.byCaller[name] >= l.perCaller:
		return fmt.Sprintf("%d requests of %s are under way, which is the most for one caller: read their answers, then ask again", l.perCaller, name)
	case !proxied && l.mu.direct >= l.direct:
		return fmt.Sprintf("%d requests are under way that did not come through the cluster's API server, which is the most: ask again, or ask through the API server", l.direct)
	}
	l.mu.byCaller[name]++
	if !proxied {
		l.mu.direct++
	}
	return ""
}

func (l *callerLimits) leave(name string, proxied bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.byCaller[name]--; l.mu.byCaller[name] == 0 {
		delete(l.mu.byCaller, name)
	}
	if !proxied {
		l.mu.direct--
	}
}

// trackingListener remembers the connections it accepted, so that they can be closed when a
// shutdown has waited long enough.
type trackingListener struct {
	net.Listener

	mu struct {
		sync.Mutex
		open map[*trackedConn]struct{}
	}
}

type trackedConn struct {
	net.Conn
	l *trackingListener
}

func newListener(inner net.Listener) *trackingListener {
	l := &trackingListener{Listener: inner}
	l.mu.open = map[*trackedConn]struct{}{}
	return l
}

// Accept implements net.Listener.
func (l *trackingListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &trackedConn{inner, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.open[c] = struct{}{}
	return c, nil
}

// Close closes the connection and removes it from the listener.
func (c *trackedConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.mu.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// closeAll closes every connection and returns how many there were.
func (l *trackingListener) closeAll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.mu.open {
		_ = c.Conn.Close() // its reader or writer gets an error
	}
	return len(l.mu.open)
}
