package nodeapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-metrics/weir/api/replicas/peer"
)

const (
	// CertificateLeasePrefix begins the name of the Lease with an agent's certificate; the node's name
	// follows. An admission policy lets an agent write no other.
	CertificateLeasePrefix = "weir-agent-"
	certificateAnnotation  = "weir.dev/certificate"
	// publishInterval is the time between two writes of the Lease, which somebody may have deleted.
	publishInterval = 10 * time.Minute
	// publishRetry is the time until the next try if the API server refuses one.
	publishRetry = 10 * time.Second
)

// Publisher publishes the certificate of an agent, so that weir's server recognises the agent.
type Publisher struct {
	Client kubernetes.Interface
	Node   string
	// Pod is the agent's pod, with namespace, name and UID. The Lease is in its namespace, and ends
	// with it.
	Pod         metav1.ObjectMeta
	Certificate *peer.Certificate
	Log         *zap.Logger
}

// Run writes the certificate into the Lease of the node until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	failed := ""
	for ctx.Err() == nil {
		next := wait.Jitter(publishInterval, 0.2)
		if err := p.publish(ctx); err == nil {
			failed = ""
		} else {
			next = publishRetry
			if text := err.Error(); text != failed && ctx.Err() == nil {
				failed = text
				p.Log.Warn("the agent's certificate is not published, so weir's server does not trust this agent", zap.Error(err))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
	return nil
}

func (p *Publisher) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishRetry)
	defer cancel()
	name := CertificateLeasePrefix + p.Node
	l := applycoordinationv1.Lease(name, p.Pod.Namespace).
		WithAnnotations(map[string]string{certificateAnnotation: string(p.Certificate.PEM())}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Pod").WithName(p.Pod.Name).WithUID(p.Pod.UID))
	if _, err := p.Client.CoordinationV1().Leases(p.Pod.Namespace).Apply(ctx, l, metav1.ApplyOptions{FieldManager: "weir-agent", Force: true}); err != nil {
		return fmt.Errorf("write Lease %s/%s: %w", p.Pod.Namespace, name, err)
	}
	return nil
}

// certificates has the transports to agents that published their certificates.
type certificates struct {
	client    kubernetes.Interface
	namespace string
	kube      *rest.Config // with the token that agents are shown

	mu    sync.Mutex
	nodes map[string]*verifiedAgent
}

// verifiedAgent is the transport to the agent with a certificate.
type verifiedAgent struct {
	certificate string
	transports  *peer.Transports
}

// transportTo returns the transport to the agent of a node. With renew it reads the agent's Lease again.
func (c *certificates) transportTo(ctx context.Context, node, address string, renew bool) (http.RoundTripper, error) {
	c.mu.Lock()
	known := c.nodes[node]
	c.mu.Unlock()
	if known == nil || renew {
		l, err := c.client.CoordinationV1().Leases(c.namespace).Get(ctx, CertificateLeasePrefix+node, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the certificate that the agent published: %w", err)
		}
		if certificate := l.Annotations[certificateAnnotation]; known == nil || known.certificate != certificate {
			known = c.replace(node, &verifiedAgent{certificate, peer.NewTransports(c.kube)})
		}
	}
	return known.transports.For(address, []byte(known.certificate))
}

func (c *certificates) replace(node string, found *verifiedAgent) *verifiedAgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.nodes[node]; old != nil {
		old.transports.Close()
	}
	c.nodes[node] = found
	return found
}

// agentTransport verifies the agent of a node by the certificate that it published. A restarted agent
// has another one.
type agentTransport struct {
	*certificates
	node string
}

// RoundTrip makes one request, which has no body.
func (t agentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	carrier, err := t.transportTo(r.Context(), t.node, r.URL.Host, false)
	if err != nil {
		return nil, err
	}
	resp, err := carrier.RoundTrip(r)
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return resp, err
	}
	if carrier, err = t.transportTo(r.Context(), t.node, r.URL.Host, true); err != nil {
		return nil, err
	}
	return carrier.RoundTrip(r)
}

// PodOf returns the agent's pod by the environment of its manifest. Its name is empty outside of pods.
func PodOf(getenv func(string) string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: getenv("POD_NAMESPACE"), Name: getenv("POD_NAME"), UID: types.UID(getenv("POD_UID"))}
}
