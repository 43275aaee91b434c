package simulator

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ServerOptions configure a Server.
type ServerOptions struct {
	Fleet *Fleet // required
	// Authority signs the certificates of the nodes. Without one, the server serves
	// plain HTTP.
	Authority *Authority
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Grace is how long a request may still take after the server was stopped.
	// Default 2 s.
	Grace time.Duration
	// Log receives the errors of connections. Default: none.
	Log *log.Logger
}

// Server answers for every node of a fleet on one port. The local address of a
// connection selects the node.
type Server struct {
	o       ServerOptions
	buffers sync.Pool // of *[]byte
	zippers sync.Pool // of *gzip.Writer
}

// NewServer returns a server; Serve starts it.
func NewServer(o ServerOptions) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = log.New(io.Discard, "", 0)
	}
	s := &Server{o: o}
	s.buffers.New = func() any { return new([]byte) }
	s.zippers.New = func() any {
		z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant
		}
		return z
	}
	return s
}

// Serve answers on l until ctx ends and the requests in progress have ended,
// and closes l. It returns nil if it ended because of ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	l = &choosy{l, s}
	if s.o.Authority != nil {
		l = tls.NewListener(l, &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				n := s.node(hello.Conn.LocalAddr())
				if n == nil {
					return nil, fmt.Errorf("no node has address %v", hello.Conn.LocalAddr())
				}
				c := n.Conduct(s.o.Now())
				return s.o.Authority.shown(n, c.As, c.Certificate)
			},
		})
	}
	return s.serve(ctx, l, s)
}

// serve runs an HTTP server until ctx ends. Requests that wait for ctx end with
// it.
func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:     h,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, madeKey{}, s.o.Now().UnixNano())
		},
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          s.o.Log,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %v: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Grace)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-ended //nolint:errcheck // Shutdown ends it without one
	if err != nil {
		return fmt.Errorf("end server on %v: %w", l.Addr(), err)
	}
	return nil
}

// madeKey is the context key of the time at which a request's connection was
// made, in nanoseconds since the Unix epoch.
type madeKey struct{}

// choosy refuses connections to nodes that are down.
type choosy struct {
	net.Listener
	server *Server
}

// Accept returns the next connection to a node that is up.
func (c *choosy) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		n := c.server.node(conn.LocalAddr())
		if n == nil || !n.Conduct(c.server.o.Now()).Down {
			return conn, nil
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			// This sends a reset, like a machine where nothing listens. If it fails, the
			// connection is closed normally.
			_ = tcp.SetLinger(0)
		}
		conn.Close()
	}
}

func (s *Server) node(a net.Addr) *Node {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	if !ok || !ip.Unmap().Is4() {
		return nil
	}
	return s.o.Fleet.At(ip)
}

// ServeHTTP answers one request for the node that has the connection's local
// address.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	n := s.node(local)
	if n == nil {
		http.Error(w, fmt.Sprintf("no node has address %v: they are %v and the %d after it", local, s.o.Fleet.nodes[0].Address, len(s.o.Fleet.nodes)-1), http.StatusNotFound)
		return
	}
	c := n.Conduct(s.o.Now())
	made, ok := r.Context().Value(madeKey{}).(int64)
	switch outlived := ok && made < c.Changed; {
	case outlived && r.ProtoMajor > 1:
		w.Header().Set("Connection", "close") // closes this connection after the answer
		http.Error(w, "another node has this address now", http.StatusMisdirectedRequest)
		return
	case outlived, c.Down:
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	if c.Hang {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	if c.Delay > 0 {
		timer := time.NewTimer(c.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if c.Status != 0 {
		http.Error(w, http.StatusText(c.Status), c.Status)
		return
	}
	if c.As != nil {
		n = c.As
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	method := http.MethodGet
	var e Endpoint
	switch path {
	case "/healthz":
		io.WriteString(w, "ok")
		return
	case "/metrics/resource":
		e = Resource
	case "/metrics/cadvisor":
		e = CAdvisor
	case "/stats/summary":
		e = Summary
		if only, _ := strconv.ParseBool(r.URL.Query().Get("only_cpu_and_memory")); only {
			e = SummaryCPUMemory
		}
	case "/stats/container":
		e, method = StatsContainer, http.MethodPost
	case "/pods":
		e = PodList
	default:
		http.NotFound(w, r)
		return
	}
	if r.Method != method && !(method == http.MethodGet && r.Method == http.MethodHead) {
		w.Header().Set("Allow", method)
		http.Error(w, "405: method not allowed", http.StatusMethodNotAllowed)
		return
	}
	s.answer(w, r, n, e)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, n *Node, e Endpoint) {
	buffer := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buffer)
	now := s.o.Now()
	*buffer = s.o.Fleet.Append((*buffer)[:0], n, e, now)
	if (e == Summary || e == SummaryCPUMemory) && n.Failing(now) {
		http.Error(w, string(*buffer), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", e.ContentType())
	w.Header().Set("Date", n.Clock(now).UTC().Format(http.TimeFormat))
	// An error means that the client has gone.
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Length", strconv.Itoa(len(*buffer)))
		_, _ = w.Write(*buffer)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := s.zippers.Get().(*gzip.Writer)
	defer s.zippers.Put(z)
	z.Reset(w)
	_, _ = z.Write(*buffer)
	_ = z.Close()
}

// TruthHandler serves the true usage, as JSON lists of Usage:
//
//	GET /truth?from=NS&to=NS   over a window, in nanoseconds since the Unix epoch
//	GET /truth/at?t=NS         at a moment: a window of length 0
//
// The default of to and t is now, that of from is the fleet's start. node=NAME
// limits the answer to one node.
func TruthHandler(f *Fleet, now func() time.Time) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request, from, to time.Time) {
		var list []Usage
		if name := r.URL.Query().Get("node"); name == "" {
			list = f.Truth(from, to)
		} else if n := f.Node(name); n != nil {
			list = n.Truth(from, to)
		} else {
			http.Error(w, fmt.Sprintf("there is no node %q", name), http.StatusNotFound)
			return
		}
		if list == nil {
			list = []Usage{}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list) // an error means that the client has gone
	}
	moment := func(w http.ResponseWriter, r *http.Request, name string, std time.Time) (time.Time, bool) {
		text := r.URL.Query().Get(name)
		if text == "" {
			return std, true
		}
		ns, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ns < 0 {
			http.Error(w, fmt.Sprintf("%s=%q: want nanoseconds since 1970", name, text), http.StatusBadRequest)
			return time.Time{}, false
		}
		return time.Unix(0, ns), true
	}
	mux.HandleFunc("GET /truth", func(w http.ResponseWriter, r *http.Request) {
		from, ok := moment(w, r, "from", f.Start())
		if !ok {
			return
		}
		to, ok := moment(w, r, "to", now())
		if !ok {
			return
		}
		if to.Before(from) {
			http.Error(w, "to is before from", http.StatusBadRequest)
			return
		}
		answer(w, r, from, to)
	})
	mux.HandleFunc("GET /truth/at", func(w http.ResponseWriter, r *http.Request) {
		if t, ok := moment(w, r, "t", now()); ok {
			answer(w, r, t, t)
		}
	})
	return mux
}

// ServeTruth serves TruthHandler on l until ctx ends, and closes l.
func (s *Server) ServeTruth(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, l, TruthHandler(s.o.Fleet, s.o.Now))
}
