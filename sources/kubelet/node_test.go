package kubelet

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/transport"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/sources/kubelet/cadvisor"
	"github.com/weir-metrics/weir/sources/kubelet/resource"
	"github.com/weir-metrics/weir/sources/kubelet/summary"
	"github.com/weir-metrics/weir/test/capture"
)

// gzipped returns body compressed as by a kubelet.
func gzipped(t testing.TB, body []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// tiny is a payload of /metrics/resource with one sample.
const tiny = "node_cpu_usage_seconds_total 3 1795234949671\n"

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

// read reads a node once.
func read(t *testing.T, s *Scraper, target Target) (*metric.Batch, error) {
	t.Helper()
	b := &metric.Batch{Node: target.Node}
	src := s.Open(target)
	err := src.Read(t.Context(), b)
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	var re *metric.ReadError
	if err != nil && !errors.As(err, &re) {
		t.Errorf("got error %v (%T), want a *metric.ReadError", err, err)
	}
	return b, err
}

// wantReason fails the test unless err has the reason and its text contains words.
func wantReason(t *testing.T, err error, reason metric.Reason, words string) {
	t.Helper()
	var re *metric.ReadError
	if !errors.As(err, &re) || re.Reason != reason || !strings.Contains(err.Error(), words) {
		t.Errorf("got error %v, want %v about %q", err, reason, words)
	}
}

func TestReadEachEndpoint(t *testing.T) {
	a := newAuthority(t)
	f := func(endpoint Endpoint, path, file string, clock time.Duration, samples int) {
		t.Helper()
		body := capture.Read(t, file)
		packed, size := gzipped(t, body), len(body)
		var connections atomic.Int32
		address := a.kubelet("node1", func(w http.ResponseWriter, r *http.Request) {
			if got := r.Method + " " + r.URL.RequestURI(); got != "GET "+path {
				t.Errorf("%s: got %s, want GET %s", endpoint, got, path)
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed)
		}, func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
				connections.Add(1)
				return nil, nil
			}
		})
		src := a.scraper(Options{Endpoint: endpoint}).Open(Target{Node: "node1", Address: address})
		var b metric.Batch
		for range 3 {
			b.Reset()
			before := time.Now()
			if err := src.Read(t.Context(), &b); err != nil {
				t.Fatalf("%s: %v", endpoint, err)
			}
			if b.Began.Before(before) || b.Ended.Before(b.Began) || time.Now().Before(b.Ended) {
				t.Errorf("%s: the read is said to have lasted from %v to %v", endpoint, b.Began, b.Ended)
			}
		}
		if len(b.Samples) != samples || b.Resolution != clock || b.Bytes != size {
			t.Errorf("%s: got %d samples, clock %v, %d bytes; want %d, %v, %d", endpoint, len(b.Samples), b.Resolution, b.Bytes, samples, clock, size)
		}
		if got := connections.Load(); got != 1 {
			t.Errorf("%s: got %d connections for three reads, want 1", endpoint, got)
		}
	}
	f(Resource, "/metrics/resource", "08-kubelet-restart/00/resource.prom", resource.Clock, 12)
	f(Summary, "/stats/summary", "08-kubelet-restart/00/summary.json", summary.Clock, 37)
	f(CAdvisor, "/metrics/cadvisor", "08-kubelet-restart/00/cadvisor.prom", cadvisor.Clock, 49)
}

func TestResourceTestifiesFromSummary(t *testing.T) {
	a := newAuthority(t)
	packed := gzipped(t, capture.Read(t, "08-kubelet-restart/00/summary.json"))
	address := a.kubelet("node1", func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.URL.RequestURI(), "/stats/summary?only_cpu_and_memory=true"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed)
	})
	s := a.scraper(Options{})
	if !s.NeedsSecond() {
		t.Error("the resource endpoint needs a second one for UIDs")
	}
	var b metric.Batch
	if err := s.Open(Target{Node: "node1", Address: address}).ReadSecond(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	uids := map[metric.PodUID]bool{}
	for i := range b.Samples {
		uids[b.Samples[i].Instance.UID] = true
	}
	if !uids["80cd749e-fe99-4226-bfc9-fe1dcb4e4831"] || b.Resolution != summary.Clock {
		t.Errorf("got UIDs %v and clock %v, want that of shop/web and a second", uids, b.Resolution)
	}
	if a.scraper(Options{Endpoint: Summary}).NeedsSecond() {
		t.Error("summaries have the UIDs: they need no second endpoint")
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	a := newAuthority(t)
	s := a.scraper(Options{MaxBytes: 1000})
	f := func(h http.HandlerFunc, reason metric.Reason, words string) {
		t.Helper()
		address := a.kubelet("n1", h)
		b, err := read(t, s, Target{Node: "n1", Address: address})
		wantReason(t, err, reason, words)
		if len(b.Samples) != 0 {
			t.Errorf("got %d samples beside %v, want none", len(b.Samples), err)
		}
		if b.Began.IsZero() || b.Ended.Before(b.Began) {
			t.Errorf("%v: the read is said to have lasted from %v to %v", err, b.Began, b.Ended)
		}
	}
	code := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	f(code(401, "Unauthorized"), metric.NodeUnauthorized, `read /metrics/resource: status 401 Unauthorized; the kubelet does not know our token or client certificate: "Unauthorized"`)
	f(code(403, "Forbidden (user=x)"), metric.NodeUnauthorized, `grant get on nodes/metrics and nodes/stats to weir's account: "Forbidden (user=x)"`)
	f(code(404, "404 page not found\n"), metric.NodeBadPayload, "choose another with endpoint=")
	f(code(500, "oops"), metric.NodeScrapeError, `status 500 Internal Server Error; the kubelet could not collect its statistics: see its log: "oops"`)
	f(code(204, ""), metric.NodeBadPayload, "status 204")
	f(answer(""), metric.NodeBadPayload, "parse /metrics/resource: line 1 (offset 0): no family")
	f(answer("<html>"), metric.NodeBadPayload, "no metric name")
	f(answer(tiny+"garbage"), metric.NodeBadPayload, "line 2")
	f(answer(strings.Repeat("#\n", 600)), metric.NodeBadPayload, "larger than max-bytes, 1000")
	f(func(w http.ResponseWriter, _ *http.Request) { // a gzip bomb
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, strings.Repeat("#\n", 1<<20))
		z.Close()
	}, metric.NodeBadPayload, "larger than max-bytes, 1000")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, tiny)
	}, metric.NodeBadPayload, "decompress")
	f(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "500")
		io.WriteString(w, tiny)
	}, metric.NodeBadPayload, "the payload ended after 45 bytes")
	f(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}, metric.NodeBadPayload, "redirects are not followed")
	f(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, metric.NodeUnreachable, "read /metrics/resource")
}

func TestKubeletThatFailedInPart(t *testing.T) {
	a := newAuthority(t)
	address := a.kubelet("n1", answer(tiny+"resource_scrape_error 1\n"))
	b, err := read(t, a.scraper(Options{}), Target{Node: "n1", Address: address})
	wantReason(t, err, metric.NodeScrapeError, "resource_scrape_error 1")
	if len(b.Samples) != 1 {
		t.Errorf("got %d samples, want the one that was read", len(b.Samples))
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = read(t, newScraper(t, Options{Insecure: true}), Target{Node: "n1", Address: address})
	wantReason(t, err, metric.NodeUnreachable, "connection refused")
}

func TestNoAddress(t *testing.T) {
	s := newScraper(t, Options{Insecure: true})
	target := targetOf(&cluster.Node{Name: "n1"}, &s.opts)
	b, err := read(t, s, target)
	wantReason(t, err, metric.NodeNoAddress, "set address-types to a type it has")
	if b.Ended.IsZero() {
		t.Error("the read has no end")
	}
}

func TestTimeout(t *testing.T) {
	a := newAuthority(t)
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	late := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, tiny)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	for _, h := range []http.HandlerFunc{hang, late} {
		address := a.kubelet("n1", h)
		_, err := read(t, a.scraper(Options{Timeout: 50 * time.Millisecond}), Target{Node: "n1", Address: address})
		wantReason(t, err, metric.NodeTimeout, "deadline exceeded")
	}
}

func TestCertificates(t *testing.T) {
	a, outsider := newAuthority(t), newAuthority(t)
	address := a.kubelet("n1", answer(tiny))
	_, port, _ := net.SplitHostPort(address)
	target := Target{Node: "n1", Address: address}

	if _, err := read(t, a.scraper(Options{}), target); err != nil {
		t.Errorf("a certificate that verifies: %v", err)
	}
	_, err := read(t, outsider.scraper(Options{}), target)
	wantReason(t, err, metric.NodeCertificate, "unknown authority")
	_, err = read(t, a.scraper(Options{}), Target{Node: "n1", Address: "localhost:" + port})
	wantReason(t, err, metric.NodeCertificate, "localhost")
	if _, err := read(t, newScraper(t, Options{Insecure: true}), target); err != nil {
		t.Errorf("insecure: %v", err)
	}
	plain := httptest.NewServer(answer(tiny))
	defer plain.Close()
	_, err = read(t, a.scraper(Options{}), Target{Node: "n1", Address: plain.Listener.Addr().String()})
	wantReason(t, err, metric.NodeBadPayload, "HTTP")
	if _, err := read(t, newScraper(t, Options{Scheme: "http"}), Target{Node: "n1", Address: plain.Listener.Addr().String()}); err != nil {
		t.Errorf("http: %v", err)
	}
}

func TestAnotherNodeAnswers(t *testing.T) {
	a := newAuthority(t)
	address := a.kubelet("n2", answer(tiny))
	for _, s := range []*Scraper{a.scraper(Options{}), newScraper(t, Options{Insecure: true})} {
		b, err := read(t, s, Target{Node: "n1", Address: address})
		wantReason(t, err, metric.NodeWrongIdentity, `expected node "n1"`)
		if len(b.Samples) != 0 {
			t.Errorf("got %d samples of another node", len(b.Samples))
		}
		if _, err := read(t, s, Target{Node: "n2", Address: address}); err != nil {
			t.Errorf("the right node: %v", err)
		}
		if _, err := read(t, s, Target{Node: "127.0.0.1", Address: address, Guessed: true}); err != nil {
			t.Errorf("a guessed name: %v", err)
		}
	}
	elsewhere := a.kubelet("n1", answer(`{"node":{"nodeName":"n7"},"pods":[]}`))
	_, err := read(t, a.scraper(Options{Endpoint: Summary}), Target{Node: "n1", Address: elsewhere})
	wantReason(t, err, metric.NodeWrongIdentity, `the summary is of node "n7"`)
}

// TestGzip checks that only a source with the gzip option gets compressed answers.
func TestGzip(t *testing.T) {
	a := newAuthority(t)
	var got string
	address := a.kubelet("n1", func(w http.ResponseWriter, r *http.Request) {
		if got = r.Header.Get("Accept-Encoding"); got != "gzip" {
			io.WriteString(w, tiny)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, tiny)
		z.Close()
	})
	f := func(o Options, want string) {
		t.Helper()
		b, err := read(t, a.scraper(o), Target{Node: "n1", Address: address})
		if err != nil || len(b.Samples) != 1 || b.Bytes != len(tiny) || got != want {
			t.Errorf("asked for %q and got %d samples of %d bytes, error %v; want %q, 1, %d", got, len(b.Samples), b.Bytes, err, want, len(tiny))
		}
	}
	f(Options{}, "identity")
	f(Options{Gzip: true}, "gzip")
}

// TestCloseOfANode checks that a closed source leaves no connection, and can be read again.
func TestCloseOfANode(t *testing.T) {
	a := newAuthority(t)
	var connections atomic.Int32
	address := a.kubelet("n1", answer(tiny), func(c *tls.Config) {
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			connections.Add(1)
			return nil, nil
		}
	})
	src := a.scraper(Options{}).Open(Target{Node: "n1", Address: address})
	for i := range 2 {
		for range 2 {
			if err := src.Read(t.Context(), new(metric.Batch)); err != nil {
				t.Fatal(err)
			}
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
		if got, want := connections.Load(), int32(i+1); got != want {
			t.Errorf("got %d connections, want %d", got, want)
		}
	}
}

func TestTokenFollowsItsFile(t *testing.T) {
	a := newAuthority(t)
	var got string
	address := a.kubelet("n1", func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		io.WriteString(w, tiny)
	})
	path := write(t, t.TempDir()+"/token", []byte("first\n"))
	s := a.scraper(Options{TokenFile: path})
	f := func(want string) {
		t.Helper()
		if _, err := read(t, s, Target{Node: "n1", Address: address}); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("got Authorization %q, want %q", got, want)
		}
	}
	f("Bearer first")
	write(t, path, []byte("the second"))
	f("Bearer the second")
	write(t, path, nil)
	f("Bearer the second") // a half written file: the last good token stays in use
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f("Bearer the second")
}

func TestClientCertificateFollowsItsFiles(t *testing.T) {
	a := newAuthority(t)
	var got string
	address := a.kubelet("n1", func(w http.ResponseWriter, r *http.Request) {
		got = r.TLS.PeerCertificates[0].Subject.CommonName
		io.WriteString(w, tiny)
	}, func(c *tls.Config) {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, a.pool()
	})
	dir := t.TempDir()
	install := func(name string) {
		cert, key := a.issue(name)
		write(t, dir+"/tls.crt", cert)
		write(t, dir+"/tls.key", key)
	}
	install("weir")
	src := a.scraper(Options{CertFile: dir + "/tls.crt", KeyFile: dir + "/tls.key"}).Open(Target{Node: "n1", Address: address})
	f := func(want string) {
		t.Helper()
		if err := src.Read(t.Context(), new(metric.Batch)); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("got client certificate of %q, want %q", got, want)
		}
	}
	f("weir")
	install("weir, renewed") // the new certificate is used although a connection is open
	f("weir, renewed")
	write(t, dir+"/tls.key", []byte("half of a key"))
	f("weir, renewed")

	_, err := read(t, a.scraper(Options{}), Target{Node: "n1", Address: address})
	wantReason(t, err, metric.NodeUnauthorized, "certificate")
}

// TestCAFollowsItsFile checks that kubelets whose certificates a new CA has signed are read once
// its certificate is in the file, by the option and by a kubeconfig, and the others no longer.
func TestCAFollowsItsFile(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	old := Target{Node: "n1", Address: before.kubelet("n1", answer(tiny))}
	renewed := Target{Node: "n1", Address: after.kubelet("n1", answer(tiny))}
	certificates := func(a *authority) []byte {
		t.Helper()
		pem, err := os.ReadFile(a.file())
		if err != nil {
			t.Fatal(err)
		}
		return pem
	}
	for says, options := range map[string]func(file string) Options{
		"option": func(file string) Options { return Options{CAFile: file} },
		"kubeconfig": func(file string) Options {
			return Options{Identity: &transport.Config{TLS: transport.TLSConfig{CAFile: file}}}
		},
	} {
		file := write(t, t.TempDir()+"/ca.crt", certificates(before))
		s := newScraper(t, options(file))
		kept := s.Open(old)
		if err := kept.Read(t.Context(), new(metric.Batch)); err != nil {
			t.Errorf("%s: %v", says, err)
		}
		if _, err := read(t, s, renewed); err == nil {
			t.Errorf("%s: no error before the CA is in the file", says)
		}
		write(t, file, append(certificates(before), certificates(after)...))
		if _, err := read(t, s, renewed); err != nil {
			t.Errorf("%s: with both: %v", says, err)
		}
		write(t, file, []byte("half of a certificate"))
		if _, err := read(t, s, renewed); err != nil {
			t.Errorf("%s: while the file is written: %v", says, err)
		}
		write(t, file, certificates(after))
		if _, err := read(t, s, renewed); err != nil {
			t.Errorf("%s: %v", says, err)
		}
		if err := kept.Read(t.Context(), new(metric.Batch)); err == nil {
			t.Errorf("%s: a kubelet that only the old CA verifies is still read", says)
		}
	}
}

// askForCertificate makes a kubelet ask for a client certificate.
func (a *authority) askForCertificate(c *tls.Config) {
	c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, a.pool()
}

// admin returns credentials as those of a kubeconfig, for the user admin.
func (a *authority) admin(t *testing.T) *transport.Config {
	t.Helper()
	ca, err := os.ReadFile(a.file())
	if err != nil {
		t.Fatal(err)
	}
	cert, key := a.issue("admin")
	return &transport.Config{BearerToken: "secret", TLS: transport.TLSConfig{CAData: ca, CertData: cert, KeyData: key, ServerName: "kubernetes"}}
}

// TestIdentityOfKubeconfig checks that the credentials of a kubeconfig are sent to kubelets, as
// metrics-server does, unless a file option is set.
func TestIdentityOfKubeconfig(t *testing.T) {
	a := newAuthority(t)
	var name, header string
	address := a.kubelet("n1", func(w http.ResponseWriter, r *http.Request) {
		name, header = "", r.Header.Get("Authorization")
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		io.WriteString(w, tiny)
	}, a.askForCertificate)
	admin := a.admin(t)
	token := write(t, t.TempDir()+"/token", []byte("of a file"))
	f := func(says string, o Options, wantName, wantHeader string) {
		t.Helper()
		if _, err := read(t, newScraper(t, o), Target{Node: "n1", Address: address}); err != nil {
			t.Errorf("%s: %v", says, err)
		}
		if name != wantName || header != wantHeader {
			t.Errorf("%s: the kubelet saw certificate %q and Authorization %q, want %q and %q", says, name, header, wantName, wantHeader)
		}
	}
	identity := func() *transport.Config {
		own := *admin
		return &own
	}
	f("certificate, token and CA of the kubeconfig", Options{Identity: identity()}, "admin", "Bearer secret")
	f("without verification", Options{Identity: identity(), Insecure: true}, "admin", "Bearer secret")
	f("a token of its own", Options{Identity: identity(), TokenFile: token}, "", "Bearer of a file")

	_, err := read(t, newScraper(t, Options{Identity: &transport.Config{TLS: transport.TLSConfig{Insecure: true}}}), Target{Node: "n1", Address: address})
	wantReason(t, err, metric.NodeCertificate, "unknown authority")
}

// TestTokenReplacesOtherCredentials checks what kubelets are shown if the options have a function
// for tokens: nothing else, except the credentials in files.
func TestTokenReplacesOtherCredentials(t *testing.T) {
	a := newAuthority(t)
	var header string
	var certificates int
	address := a.kubelet("n1", func(w http.ResponseWriter, r *http.Request) {
		header, certificates = r.Header.Get("Authorization"), len(r.TLS.PeerCertificates)
		io.WriteString(w, tiny)
	}, a.askForCertificate)
	admin := a.admin(t)
	file := write(t, t.TempDir()+"/token", []byte("of a file"))
	token, tokenErr := "first", error(nil)
	give := func(context.Context) (string, error) { return token, tokenErr }
	f := func(says string, o Options, want string) {
		t.Helper()
		header, certificates = "", 0
		s := newScraper(t, o)
		_, err := read(t, s, Target{Node: "n1", Address: address})
		if err != nil || header != want || certificates != 0 {
			t.Errorf("%s: %v, the kubelet saw Authorization %q and %d certificates, want %q and none", says, err, header, certificates, want)
		}
	}
	f("in a pod", Options{CAFile: a.file(), Token: give}, "Bearer first")
	f("with a kubeconfig", Options{Identity: admin, Token: give}, "Bearer first")
	f("with a file", Options{CAFile: a.file(), Token: give, TokenFile: file}, "Bearer of a file")
	f("with a list of targets", Options{CAFile: a.file(), Token: give, Targets: []string{"n1=" + address}}, "")

	s := a.scraper(Options{Token: give})
	for _, token = range []string{"first", "second", "second"} {
		if _, err := read(t, s, Target{Node: "n1", Address: address}); err != nil || header != "Bearer "+token {
			t.Errorf("%v, the kubelet saw %q, want %s", err, header, token)
		}
	}
	header, tokenErr = "", errors.New("the account is not there")
	_, err := read(t, s, Target{Node: "n1", Address: address})
	if wantReason(t, err, metric.NodeUnauthorized, "the account is not there"); header != "" {
		t.Errorf("without a token the kubelet saw %q", header)
	}
}

// A token that a kubelet does not accept is reported, and one without rights is not.
func TestRefusedToken(t *testing.T) {
	a := newAuthority(t)
	status := http.StatusUnauthorized
	address := a.kubelet("n1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	var refused []string
	s := a.scraper(Options{
		Token:       func(context.Context) (string, error) { return "old", nil },
		RefuseToken: func(node metric.NodeName, token string) { refused = append(refused, string(node)+" "+token) },
	})
	for _, status = range []int{http.StatusUnauthorized, http.StatusForbidden} {
		_, err := read(t, s, Target{Node: "n1", Address: address})
		wantReason(t, err, metric.NodeUnauthorized, http.StatusText(status))
	}
	if !slices.Equal(refused, []string{"n1 old"}) {
		t.Errorf("reported as refused: %q, want old of n1 once", refused)
	}
}

func TestPathOfAnnotation(t *testing.T) {
	a := newAuthority(t)
	var asked string
	address := a.kubelet("n1", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		io.WriteString(w, tiny)
	})
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	f := func(o Options, annotation, want string) {
		t.Helper()
		s := a.scraper(o)
		target := targetOf(&cluster.Node{
			Name: "n1", Addresses: []cluster.NodeAddress{{Type: "InternalIP", Address: host}}, KubeletPort: int32(port),
			Annotations: map[string]string{cluster.PathAnnotation: annotation},
		}, &s.opts)
		_, err := read(t, s, target)
		if err != nil && o.Endpoint == Resource {
			t.Errorf("%q: %v", annotation, err)
		}
		if asked != want {
			t.Errorf("%q: got GET %s, want %s", annotation, asked, want)
		}
	}
	resource := Options{Endpoint: Resource}
	f(resource, "", "/metrics/resource")
	f(resource, "/metrics/virtual", "/metrics/virtual")
	f(resource, "virtual%20node", "/virtual%2520node")
	f(resource, "?a=b", "/metrics/resource")
	f(Options{Endpoint: Summary}, "/metrics/virtual", "/stats/summary")
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	empty := write(t, dir+"/empty", nil)
	f := func(o Options, want string) {
		t.Helper()
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want %q", o, err, want)
		}
	}
	f(Options{CAFile: dir + "/none"}, "read CA")
	f(Options{CAFile: empty}, "has no certificate")
	f(Options{TokenFile: dir + "/none"}, "read token")
	f(Options{TokenFile: empty}, "is empty")
	f(Options{CertFile: empty, KeyFile: empty}, "read client certificate")
	f(Options{Targets: []string{"@" + dir + "/none"}}, "open targets")
	f(Options{Endpoint: "x"}, `endpoint "x" is unknown`)
}

func TestClassify(t *testing.T) {
	f := func(err error, want metric.Reason) {
		t.Helper()
		if got := reasonOf(err); got != want {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
	f(context.DeadlineExceeded, metric.NodeTimeout)
	f(os.ErrDeadlineExceeded, metric.NodeTimeout)
	f(&net.DNSError{Err: "no such host"}, metric.NodeUnreachable)
	f(x509.HostnameError{Certificate: &x509.Certificate{}}, metric.NodeCertificate)
	f(io.EOF, metric.NodeUnreachable)
}
