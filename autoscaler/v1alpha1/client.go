package v1alpha1

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// Interface reads and writes the Autoscalers of one namespace, or reads those of all namespaces.
type Interface interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*Autoscaler, error)
	List(ctx context.Context, o metav1.ListOptions) (*AutoscalerList, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	UpdateStatus(ctx context.Context, a *Autoscaler, o metav1.UpdateOptions) (*Autoscaler, error)
}

// Getter gives access to the Autoscalers of a namespace, or of all namespaces if it is empty.
type Getter interface {
	Autoscalers(namespace string) Interface
}

// Client is a client of the API. It is a Getter.
type Client struct {
	rest  rest.Interface
	codec runtime.ParameterCodec
}

// NewForConfig returns a client for the API server that config names.
func NewForConfig(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	gv := GroupVersion()
	c.GroupVersion, c.APIPath = &gv, "/apis"
	c.ContentType, c.AcceptContentTypes = "", "" // custom resources have only JSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("create client of %s: %w", gv, err)
	}
	return &Client{rest: client, codec: runtime.NewParameterCodec(scheme)}, nil
}

// Autoscalers implements Getter.
func (c *Client) Autoscalers(namespace string) Interface {
	return gentype.NewClientWithList(Resource, c.rest, c.codec, namespace,
		func() *Autoscaler { return &Autoscaler{} }, func() *AutoscalerList { return &AutoscalerList{} })
}
