package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/weir-metrics/weir/test/simulator"
	"github.com/weir-metrics/weir/test/simulator/apiserver"
)

// api is the simulated API server and the port it is on.
type api struct {
	server   *apiserver.Server
	listener net.Listener
	http     *http.Server
}

// openAPI listens at the address of the flags, and writes the kubeconfig of its clients. It
// returns nil if no API server is wanted.
func (f *flags) openAPI(ctx context.Context, fleet *simulator.Fleet, authority *simulator.Authority, port int, complaints *log.Logger) (_ *api, err error) {
	if f.apiServer == "" {
		if f.kubeconfigFile != "" {
			return nil, errors.New("--kubeconfig-file without an API server: give --api-server HOST:PORT")
		}
		return nil, nil
	}
	host, _, err := net.SplitHostPort(f.apiServer)
	if err != nil {
		return nil, fmt.Errorf("read --api-server: %w: want HOST:PORT", err)
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", f.apiServer)
	if err != nil {
		return nil, fmt.Errorf("listen for the API server: %w", err)
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	a := &api{server: apiserver.New(apiserver.Options{Fleet: fleet, Port: port, Autoscalers: f.autoscalers}), listener: l}
	a.http = &http.Server{Handler: a.server, ReadHeaderTimeout: 10 * time.Second, ErrorLog: complaints}
	url, ca := "http://"+l.Addr().String(), []byte(nil)
	if authority != nil {
		certificate, err := authority.ServerCertificate(host)
		if err != nil {
			return nil, err
		}
		a.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
		url, ca = "https://"+l.Addr().String(), authority.PEM()
	}
	if f.kubeconfigFile != "" {
		file, err := apiserver.Kubeconfig(url, ca)
		if err == nil {
			err = os.WriteFile(f.kubeconfigFile, file, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	return a, nil
}

// serve answers until ctx ends. Watches end first, so that nothing waits for them.
func (a *api) serve(ctx context.Context, grace time.Duration) error {
	followed := make(chan error, 1)
	go func() { followed <- a.server.Run(ctx) }()
	ended := make(chan error, 1)
	go func() {
		if a.http.TLSConfig != nil {
			ended <- a.http.ServeTLS(a.listener, "", "")
		} else {
			ended <- a.http.Serve(a.listener)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the API: %w", err)
	case <-ctx.Done():
	}
	<-followed //nolint:errcheck // it ends with ctx, without one
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := a.http.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = a.http.Close()
	}
	<-ended //nolint:errcheck // Shutdown ends it without one
	if err != nil {
		return fmt.Errorf("end API server: %w", err)
	}
	return nil
}
