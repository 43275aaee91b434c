// Package httpserver is the HTTP front of a weir process: it listens where it may,
// answers health checks, shows an index of what is served, and ends in order.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/weir-metrics/weir/client/cli"
)

// DefaultAddress is where a weir on this machine listens, and where its clients
// look for it.
const DefaultAddress = "127.0.0.1:8087"

// Listen opens address. An address that others than this machine can reach is
// refused unless open is set: what is served is not for everyone, and nobody
// asks who reads it.
func Listen(ctx context.Context, address string, open bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--listen %q is no HOST:PORT", address))
	}
	if !open && !loopback(host) {
		return nil, cli.Hintf(
			fmt.Errorf("refuse to listen on %s: others than this machine could read it without authentication", address),
			"Listen on 127.0.0.1, or say --allow-unauthenticated if everyone who can reach it may read it.")
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

// loopback reports whether only this machine reaches host. An empty host is
// every address there is.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Options configure Serve.
type Options struct {
	// Grace is how long requests that are under way may take to end; 5s if 0.
	Grace time.Duration
	// Logger hears of connections that fail; nil for nobody.
	Logger *zap.Logger
}

// Serve answers on ln until ctx ends, lets what is under way finish, and
// returns once nothing runs any more.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, o Options) error {
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	errorLog, err := zap.NewStdLogAt(o.Logger, zap.DebugLevel)
	if err != nil {
		return fmt.Errorf("make error log: %w", err)
	}
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
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Grace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		// The patient way took too long: what is under way is cut off.
		o.Logger.Warn("requests were cut off at shutdown", zap.Duration("after", o.Grace))
		_ = srv.Close() // it closes the listener, which Shutdown has closed
	}
	<-failed //nolint:errcheck // Shutdown ends it without one
	return nil
}
