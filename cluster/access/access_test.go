package access_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/cluster/access"
)

// TestNodeTransportShowsItsTokenToWhomItTrusts calls an agent with the token for the API server.
// The token must reach the agent only if the flags trust its certificate.
func TestNodeTransportShowsItsTokenToWhomItTrusts(t *testing.T) {
	var seen string
	agent := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Authorization") }))
	agent.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail when the client does not trust the agent
	agent.StartTLS()
	defer agent.Close()
	file := func(name string, certificate []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agents := file("ca", agent.Certificate().Raw)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The API server has another certificate and another name.
	kube := &rest.Config{Host: "https://api.test", BearerTokenFile: token, TLSClientConfig: rest.TLSClientConfig{ServerName: "api.test", CAData: []byte("none")}}
	for _, test := range []struct {
		what     string
		ca       string
		insecure bool
		want     string
	}{
		{"without verification", "", true, "Bearer s3cret"},
		{"by its certificate", agents, false, "Bearer s3cret"},
	} {
		seen = ""
		carrier, err := access.NodeTransport(kube, test.ca, test.insecure)
		if err != nil {
			t.Fatalf("%s: %v", test.what, err)
		}
		response, err := (&http.Client{Transport: carrier}).Get(agent.URL)
		if err != nil || seen != test.want {
			t.Errorf("%s: %v, shown %q; want %q", test.what, err, seen, test.want)
		}
		if err == nil {
			response.Body.Close()
		}
	}
	// If the API server's certificate is not verified, those of agents still are.
	kube.CAData, kube.Insecure, seen = nil, true, ""
	carrier, err := access.NodeTransport(kube, "", false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&http.Client{Transport: carrier}).Get(agent.URL)
	var distrust *tls.CertificateVerificationError
	if !errors.As(err, &distrust) || seen != "" {
		t.Errorf("an agent nobody vouches for: %v, shown %q; want no trust and no token", err, seen)
	}
	if _, err := access.NodeTransport(kube, token, false); err == nil || !strings.Contains(err.Error(), "has none in PEM") {
		t.Errorf("certificates that are none: %v", err)
	}
	if kube.ServerName != "api.test" || !kube.Insecure {
		t.Error("the API server's own trust has changed")
	}
}
