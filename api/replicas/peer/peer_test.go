package peer_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/replicas/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replica starts a server with the certificate c. It answers with what it received.
func replica(t *testing.T, c *peer.Certificate) (address string) {
	t.Helper()
	pair, err := tls.X509KeyPair(c.PEM(), c.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.TLS.ServerName+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Impersonate-User")+r.Header.Get("Accept-Encoding"))
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func certificate(t *testing.T) *peer.Certificate {
	t.Helper()
	c, err := peer.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(t *testing.T, tr *peer.Transports, address string, pem []byte) (string, error) {
	t.Helper()
	transport, err := tr.For("other", address, pem)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	return string(b), err
}

func TestOnlyTheCertificateThatWasPublishedIsBelieved(t *testing.T) {
	a, b := certificate(t), certificate(t)
	address := replica(t, a)
	// Of the API server's configuration, only the credentials are used.
	tr := peer.NewTransports(&rest.Config{
		Host: "https://api", BearerToken: "token", Impersonate: rest.ImpersonationConfig{UserName: "root"},
		TLSClientConfig: rest.TLSClientConfig{Insecure: true, ServerName: "api"},
	})
	defer tr.Close()
	if got, err := ask(t, tr, address, a.PEM()); err != nil || got != "weir-peer Bearer token " {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ask(t, tr, address, b.PEM()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with another's certificate: got %q, %v", got, err)
	}
	if _, err := ask(t, tr, address, []byte("no PEM")); err == nil || !strings.HasPrefix(err.Error(), "read certificate of peer "+address+": ") {
		t.Errorf("with no certificate: %v", err)
	}
}

func TestTransportIsKept(t *testing.T) {
	a, b := certificate(t), certificate(t)
	tr := peer.NewTransports(&rest.Config{})
	defer tr.Close()
	get := func(name, address string, c *peer.Certificate) http.RoundTripper {
		t.Helper()
		transport, err := tr.For(name, address, c.PEM())
		if err != nil {
			t.Fatal(err)
		}
		return transport
	}
	first, second := get("a", "192.0.2.1:443", a), get("b", "192.0.2.2:443", b)
	if get("a", "192.0.2.1:443", a) != first || get("b", "192.0.2.2:443", b) != second {
		t.Error("the same peer got another transport")
	}
	if got, known := tr.Certificate("a"); string(got) != string(a.PEM()) || !known {
		t.Errorf("the certificate of a: got %q, %t, want its own", got, known)
	}
	if second == first || get("a", "192.0.2.2:443", a) == first || get("a", "192.0.2.1:443", b) == first {
		t.Error("another peer got the same transport")
	}
	tr.Retain(func(name string) bool { return name == "b" })
	if got, known := tr.Certificate("a"); len(got) > 0 || known {
		t.Errorf("a is gone, and its certificate is %q, %t", got, known)
	}
	if get("b", "192.0.2.2:443", b) != second {
		t.Error("b got another transport when a was forgotten")
	}
}

func TestRoute(t *testing.T) {
	tr := peer.NewTransports(&rest.Config{})
	defer tr.Close()
	c := certificate(t)
	for name, test := range map[string]struct {
		address string
		pem     []byte
		self    bool
		want    string
	}{
		"another leads":              {"192.0.2.1:443", c.PEM(), false, "https://192.0.2.1:443"},
		"this leads":                 {"192.0.2.1:443", c.PEM(), true, ""},
		"nobody leads":               {"", nil, false, ""},
		"one with a bad certificate": {"192.0.2.1:443", []byte("no PEM"), false, ""},
	} {
		url, transport, self := tr.Route(func() (string, []byte, bool) { return test.address, test.pem, test.self })()
		if url != test.want || self != (test.want == "") || (transport == nil) != (test.want == "") {
			t.Errorf("%s: %q, %v, self %t; want %q", name, url, transport, self, test.want)
		}
	}
}

func TestCertificateIsForPeersOnly(t *testing.T) {
	c := certificate(t)
	pair, err := tls.X509KeyPair(c.PEM(), c.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := leaf.VerifyHostname(peer.Name); err != nil {
		t.Error(err)
	}
	if err := leaf.VerifyHostname("localhost"); err == nil {
		t.Error("the certificate is good for localhost")
	}
	if year := 365 * 24 * time.Hour; time.Since(leaf.NotBefore) < year || time.Until(leaf.NotAfter) < year {
		t.Errorf("the certificate holds from %v to %v: a replica with another clock would not believe it", leaf.NotBefore, leaf.NotAfter)
	}
}
