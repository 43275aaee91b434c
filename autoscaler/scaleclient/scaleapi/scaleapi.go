// Package scaleapi reads and writes scales through an API server.
//
// It finds the resource of a kind in the API server's discovery, which it caches. If a kind is
// missing, it asks again, at most once in five minutes. An autoscaler for a kind that was never
// installed therefore costs nothing.
package scaleapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"

	"github.com/weir-metrics/weir/autoscaler"
	"github.com/weir-metrics/weir/autoscaler/scaleclient"
)

// rediscoverInterval is the shortest time between two discoveries for a kind that the last one did
// not find.
const rediscoverInterval = 5 * time.Minute

// Client reads and writes scales through an API server. It is safe for concurrent use.
type Client struct {
	mapper *restmapper.DeferredDiscoveryRESTMapper
	client scale.ScalesGetter

	mu struct {
		sync.Mutex
		discovered time.Time
	}
}

// New returns a Client of the API server of config. It discovers the kinds once, and again when one
// is missing.
func New(config *rest.Config) (*Client, error) {
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = "", "" // custom resources have only JSON
	client, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	cached := memory.NewMemCacheClient(client)
	s := &Client{mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}
	s.client, err = scale.NewForConfig(rest.CopyConfig(c), s.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cached))
	if err != nil {
		return nil, fmt.Errorf("create scale client: %w", err)
	}
	return s, nil
}

// Get implements scaleclient.ScaleReader. If a kind has several resources, it returns the scale of the first
// resource that has one. If none has, it returns the error of the first.
func (c *Client) Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (autoscaler.Scale, *scaleclient.Handle, error) {
	mappings, err := c.mappings(ctx, ref)
	if err != nil {
		return autoscaler.Scale{}, nil, err
	}
	var first error
	for _, m := range mappings {
		id := scaleclient.WorkloadID{Namespace: namespace, Resource: m.Resource.GroupResource(), Name: ref.Name}
		got, err := c.client.Scales(namespace).Get(ctx, id.Resource, ref.Name, metav1.GetOptions{})
		if err == nil {
			return scaleOf(got), &scaleclient.Handle{WorkloadID: id, Scale: got}, nil
		}
		if first == nil {
			first = fmt.Errorf("get the scale of %s %s: %w", ref.Kind, ref.Name, err)
		}
	}
	return autoscaler.Scale{}, nil, first
}

func scaleOf(s *autoscalingv1.Scale) autoscaler.Scale {
	return autoscaler.Scale{SpecReplicas: s.Spec.Replicas, StatusReplicas: s.Status.Replicas, Selector: s.Status.Selector}
}

// Update implements scaleclient.Scales.
func (c *Client) Update(ctx context.Context, h *scaleclient.Handle, replicas int32) error {
	if h == nil || h.Scale == nil {
		return errors.New("change a scale: it was not read")
	}
	scales, now := c.client.Scales(h.Namespace), h.Scale
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		switch now.Spec.Replicas {
		case h.Scale.Spec.Replicas:
		case replicas:
			return nil // another client has already written the count
		default:
			return fmt.Errorf("another client changed the count from %d to %d meanwhile", h.Scale.Spec.Replicas, now.Spec.Replicas)
		}
		changed := now.DeepCopy()
		changed.Spec.Replicas = replicas
		_, err := scales.Update(ctx, h.Resource, changed, metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
		// The retry uses the current scale, or the last known one if it cannot be read.
		if latest, again := scales.Get(ctx, h.Resource, h.Name, metav1.GetOptions{}); again == nil {
			now = latest
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("change the scale of %s: %w", h.WorkloadID, err)
	}
	return nil
}

// WorkloadID implements scaleclient.Scales. It asks the API server only for kinds.
func (c *Client) WorkloadID(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (scaleclient.WorkloadID, error) {
	mappings, err := c.mappings(ctx, ref)
	if err != nil {
		return scaleclient.WorkloadID{}, err
	}
	return scaleclient.WorkloadID{Namespace: namespace, Resource: mappings[0].Resource.GroupResource(), Name: ref.Name}, nil
}

// mappings returns the resources of the kind that ref names, at least one. The version does not
// matter, because a workload is the same in each version.
func (c *Client) mappings(ctx context.Context, ref autoscalingv2.CrossVersionObjectReference) ([]*meta.RESTMapping, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("parse the target's apiVersion: %w", err)
	}
	kind := schema.GroupKind{Group: gv.Group, Kind: ref.Kind}
	mappings, err := discover(ctx, c, func() ([]*meta.RESTMapping, error) { return c.mapper.RESTMappingsWithContext(ctx, kind) })
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", ref.Kind, err)
	}
	if len(mappings) == 0 {
		return nil, fmt.Errorf("find the resource of kind %s: %w", ref.Kind, &meta.NoKindMatchError{GroupKind: kind})
	}
	return mappings, nil
}

// Resource returns the version of a resource that the API server prefers.
func (c *Client) Resource(ctx context.Context, resource schema.GroupResource) (schema.GroupVersionResource, error) {
	return discover(ctx, c, func() (schema.GroupVersionResource, error) {
		return c.mapper.ResourceForWithContext(ctx, resource.WithVersion(""))
	})
}

// discover calls find, and once more after a discovery if it finds no match.
func discover[T any](ctx context.Context, c *Client, find func() (T, error)) (T, error) {
	found, err := find()
	if meta.IsNoMatchError(err) && c.mayDiscover(time.Now()) {
		c.mapper.ResetWithContext(ctx)
		return find()
	}
	return found, err
}

// mayDiscover reports whether the last discovery was long enough ago.
func (c *Client) mayDiscover(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.mu.discovered) < rediscoverInterval {
		return false
	}
	c.mu.discovered = now
	return true
}
