package agents

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	applycoordinationv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// publishedAgents are the agents that published their certificates.
type publishedAgents struct {
	client     kubernetes.Interface
	namespace  string
	transports *peer.Transports       // by node
	exists     func(node string) bool // whether the cluster has the node
}

// transportTo returns the transport to the agent of a node. With renew it reads the agent's Lease again.
// Each reading forgets the agents of nodes that are gone.
func (a *publishedAgents) transportTo(ctx context.Context, node, address string, renew bool) (http.RoundTripper, error) {
	certificate, known := a.transports.Certificate(node)
	if !known || renew {
		a.transports.Retain(a.exists)
		l, err := a.client.CoordinationV1().Leases(a.namespace).Get(ctx, CertificateLeasePrefix+node, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read the certificate that the agent published: %w", err)
		}
		certificate = []byte(l.Annotations[certificateAnnotation])
	}
	return a.transports.For(node, address, certificate)
}

// agentTransport verifies the agent of a node by the certificate that it published. A restarted agent
// has another one.
type agentTransport struct {
	*publishedAgents
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
