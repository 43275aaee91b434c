package leader

import (
	"context"
	"strconv"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// The annotations of the Lease that describe how its holder is reached.
const (
	// AddressAnnotation is the holder's HOST:PORT.
	AddressAnnotation = "weir-metrics.github.io/address"
	// CertificateAnnotation is the holder's certificate as PEM.
	CertificateAnnotation = "weir-metrics.github.io/certificate"
)

// The annotations of the Lease about how many nodes are read.
const (
	// readsAnnotation is the number of the holder.
	readsAnnotation = "weir-metrics.github.io/reads"
	// moreAnnotation is the number of a replica that reads clearly more.
	moreAnnotation = "weir-metrics.github.io/reads-more"
)

// leaseClient is the client for the Lease of an election. It writes the holder, its address and its
// certificate together, so that no reader sees those of two replicas. It stores each Lease that it
// reads or writes.
type leaseClient struct {
	coordinationv1.LeaseInterface
	elector *Elector
}

// Leases implements coordinationv1.LeasesGetter.
func (c *leaseClient) Leases(string) coordinationv1.LeaseInterface { return c }

// Get reads the Lease.
func (c *leaseClient) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordination.Lease, error) {
	lease, err := c.LeaseInterface.Get(ctx, name, o)
	c.elector.noteRead(err)
	if err == nil {
		c.elector.observe(ctx, lease)
		c.elector.compareReads(ctx, lease, c.LeaseInterface)
	}
	return lease, err
}

// Create writes a new Lease.
func (c *leaseClient) Create(ctx context.Context, lease *coordination.Lease, o metav1.CreateOptions) (*coordination.Lease, error) {
	return c.write(ctx, lease, func() (*coordination.Lease, error) { return c.LeaseInterface.Create(ctx, lease, o) })
}

// Update writes the Lease.
func (c *leaseClient) Update(ctx context.Context, lease *coordination.Lease, o metav1.UpdateOptions) (*coordination.Lease, error) {
	return c.write(ctx, lease, func() (*coordination.Lease, error) { return c.LeaseInterface.Update(ctx, lease, o) })
}

func (c *leaseClient) write(ctx context.Context, lease *coordination.Lease, send func() (*coordination.Lease, error)) (*coordination.Lease, error) {
	delete(lease.Annotations, AddressAnnotation)
	delete(lease.Annotations, CertificateAnnotation)
	delete(lease.Annotations, readsAnnotation)
	delete(lease.Annotations, moreAnnotation)
	if *lease.Spec.HolderIdentity != "" { // it is empty if the Lease is released
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, AddressAnnotation, c.elector.opts.Address)
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, CertificateAnnotation, string(c.elector.opts.Certificate))
		if reads := c.elector.opts.Reads; reads != nil {
			metav1.SetMetaDataAnnotation(&lease.ObjectMeta, readsAnnotation, strconv.Itoa(reads()))
		}
	}
	begun := time.Now()
	written, err := send()
	if err == nil {
		c.elector.renewed.Store(&begun)
		c.elector.observe(ctx, written)
	}
	return written, err
}
