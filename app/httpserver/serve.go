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

// Listen opens address. It refuses an address that other machines can reach, unless open is set:
// this server does not authenticate its readers.
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

// Serve answers on ln until ctx ends. It gives requests some time to finish, and returns when
// nothing runs any more.
func Serve(ctx context.Context, ln net.Listener, h http.Handler, grace time.Duration, log *zap.Logger) error {
	errorLog, _ := zap.NewStdLogAt(log, zap.DebugLevel) // it knows this level
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
		_ = srv.Close() // it closes the listener, which Shutdown has closed
	}
	<-failed //nolint:errcheck // Shutdown ends it without one
	return nil
}
