package agents

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/nodeapi"
	"github.com/weir-metrics/weir/api/replicas/peer"
	"github.com/weir-metrics/weir/api/weirdev"
)

// startAgent starts an agent that answers with a word and has this certificate.
func startAgent(t *testing.T, word string, c *peer.Certificate, shown *string) (address string) {
	t.Helper()
	pair, err := tls.X509KeyPair(c.PEM(), c.KeyPEM())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*shown = r.Header.Get("Authorization")
		_ = json.NewEncoder(w).Encode(word)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes fail when the client does not trust the agent
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func newCertificate(t *testing.T) *peer.Certificate {
	t.Helper()
	c, err := peer.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// askProxy asks a proxy about the evictions of a node.
func askProxy(p *nodeapi.Proxy, node string, answer any) error {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, weirdev.Path+"nodes/"+node+"/eviction", nil))
	if w.Code == http.StatusOK {
		return json.Unmarshal(w.Body.Bytes(), answer)
	}
	var problem struct{ Message string }
	return cmp.Or(json.Unmarshal(w.Body.Bytes(), &problem), errors.New(problem.Message))
}

// TestAgentsAreRecognised asks an agent, another program at its address, and the agent after a restart.
func TestAgentsAreRecognised(t *testing.T) {
	client := fake.NewClientset()
	publish := func(c *peer.Certificate) {
		t.Helper()
		p := Publisher{Client: client, Node: "n1", Pod: metav1.ObjectMeta{Namespace: "weir-agents", Name: "weir-agent-x", UID: "u1"}, Certificate: c, Log: zap.NewNop()}
		if err := p.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	shown := ""
	first, second := newCertificate(t), newCertificate(t)
	root := startAgent(t, "first", first, &shown)
	exists := map[string]bool{"n1": true}
	known := &publishedAgents{
		client: client, namespace: "weir-agents", transports: peer.NewTransports(&rest.Config{BearerToken: "for agents"}), exists: func(node string) bool { return exists[node] },
	}
	p := nodeapi.NewProxy(func(node string) (string, http.RoundTripper, error) { return root, agentTransport{known, node}, nil })
	ask := func(what, want, wantError, wantShown string) {
		t.Helper()
		shown = ""
		var got string
		err := askProxy(p, "n1", &got)
		if got != want || (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) || shown != wantShown {
			t.Errorf("%s: got %q, %v, and it was shown %q; want %q, an error with %q, and that it is shown %q", what, got, err, shown, want, wantError, wantShown)
		}
	}
	ask("before it published its certificate", "", `leases.coordination.k8s.io "weir-agent-n1" not found`, "")
	publish(first)
	ask("when it did", "first", "", "Bearer for agents")
	root = startAgent(t, "forged", newCertificate(t), &shown)
	ask("something else at its port", "", "has a certificate that weir does not trust", "")
	root = startAgent(t, "second", second, &shown)
	ask("another agent of the node, not yet published", "", "has a certificate that weir does not trust", "")
	publish(second)
	ask("another agent of the node", "second", "", "Bearer for agents")

	delete(exists, "n1")
	if err := askProxy(p, "n2", new(string)); err == nil {
		t.Error("the agent of n2 published nothing, and answers")
	}
	if got, known := known.transports.Certificate("n1"); known {
		t.Errorf("n1 is gone, and its agent is still known by %s", got)
	}
}

// TestAgentWithADamagedCertificate asks an agent after its Lease had a text that is not a certificate.
func TestAgentWithADamagedCertificate(t *testing.T) {
	client := fake.NewClientset()
	c, shown := newCertificate(t), ""
	agents := &publishedAgents{client: client, namespace: "weir-agents", transports: peer.NewTransports(&rest.Config{}), exists: func(string) bool { return true }}
	root := startAgent(t, "well", c, &shown)
	p := nodeapi.NewProxy(func(node string) (string, http.RoundTripper, error) { return root, agentTransport{agents, node}, nil })
	publisher := Publisher{Client: client, Node: "n1", Pod: metav1.ObjectMeta{Namespace: "weir-agents", Name: "weir-agent-x", UID: "u1"}, Certificate: &peer.Certificate{}, Log: zap.NewNop()}
	var got string
	if err := errors.Join(publisher.publish(t.Context()), askProxy(p, "n1", &got)); err == nil || !strings.Contains(err.Error(), "read certificate of peer") {
		t.Errorf("with a damaged certificate: got %q, %v, want that it cannot be read", got, err)
	}
	publisher.Certificate = c
	if err := errors.Join(publisher.publish(t.Context()), askProxy(p, "n1", &got)); err != nil || got != "well" {
		t.Errorf("with its certificate: got %q, %v, want what the agent says", got, err)
	}
}

// TestCertificatesArePublished looks at what an agent writes.
func TestCertificatesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		c := newCertificate(t)
		p := Publisher{Client: client, Node: "n1", Pod: metav1.ObjectMeta{Namespace: "weir-agents", Name: "weir-agent-x", UID: "u1"}, Certificate: c, Log: zap.NewNop()}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		l, err := client.CoordinationV1().Leases("weir-agents").Get(ctx, "weir-agent-n1", metav1.GetOptions{})
		cancel()
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		if got := l.Annotations[certificateAnnotation]; got != string(c.PEM()) || strings.Contains(got, "PRIVATE") {
			t.Errorf("published:\n%s\nwant\n%s", got, c.PEM())
		}
		if o := l.OwnerReferences; len(o) != 1 || o[0].Kind != "Pod" || o[0].UID != "u1" {
			t.Errorf("owners %v, want the agent's pod", o)
		}
	})
}
