// Package httpserver is the HTTP server of a weir process: it opens the port, answers health
// checks, shows an index of its paths, and shuts down in order.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/cmd/client/cli"
)

// DefaultAddress is the address where a weir on this machine listens and where its clients look for
// it.
const DefaultAddress = "127.0.0.1:8087"

// Listen opens address. It returns an error for an address that other machines can reach, unless
// open is set, because this server does not authenticate its callers.
func Listen(ctx context.Context, address string, open bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--listen %q is not HOST:PORT", address))
	}
	if !open && !loopback(host) {
		return nil, cli.Hintf(
			fmt.Errorf("refuse to listen on %s: other machines could read it without authentication", address),
			"Listen on 127.0.0.1, or set --allow-unauthenticated if everyone who can reach it may read it.")
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Hintf(fmt.Errorf("listen on %s: the address is in use", address),
			"Is it another weir? Choose another address with --listen=HOST:PORT.")
	case errors.Is(err, syscall.EACCES):
		return nil, cli.Hintf(fmt.Errorf("listen on %s: permission denied", address),
			"Ports below 1024 are root's. Choose another address with --listen=HOST:PORT.")
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	}
	return ln, nil
}

// loopback reports whether only this machine can reach host. An empty host means all addresses.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// LocalHosts returns a handler that refuses requests whose Host header is not this machine. A web page
// can otherwise read a server on loopback through the browser of this machine, with a name of its own
// that it lets resolve to 127.0.0.1. Requests without Host are answered; browsers always send one.
func LocalHosts(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if host != "" && !loopback(host) {
			http.Error(w, fmt.Sprintf("this weir does not answer to the name %q, since it does not authenticate callers: use 127.0.0.1 or localhost, "+
				"or start it with --allow-unauthenticated if everyone who can reach it may read it", host), http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Serve answers on ln until ctx ends. Then it gives requests the time grace to finish, and returns
// when nothing runs any more.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, grace time.Duration, log *zap.Logger) error {
	errorLog, _ := zap.NewStdLogAt(log, zap.DebugLevel) // it fails only for unknown levels
	srv := &http.Server{
		Handler:           h,
		ErrorLog:          errorLog,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		log.Warn("requests were cut off at shutdown", zap.Duration("after", grace))
		_ = srv.Close() // it closes the listener again; Shutdown has already closed it
	}
	<-failed //nolint:errcheck // Shutdown ends it without one
	return nil
}
