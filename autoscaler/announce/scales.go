package announce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

// Scales tells the pods of workloads. APIScales do, and tests' stand-ins.
type Scales interface {
	// Selector returns the selector of the pods of a workload, as its scale
	// subresource tells it. The error is one of Kubernetes' (NotFound), or says
	// what the workload lacks.
	Selector(ctx context.Context, namespace, apiVersion, kind, name string) (labels.Selector, error)
}

// rediscover is the least time between two discoveries for a kind that the last
// one did not find.
const rediscover = 5 * time.Minute

// APIScales are Scales that ask an API server. They may be used by several
// goroutines.
type APIScales struct {
	mapper *restmapper.DeferredDiscoveryRESTMapper
	client scale.ScalesGetter

	mu struct {
		sync.Mutex
		discovered time.Time
	}
}

// NewScales returns Scales that ask the API server which config names. Which kinds
// there are is asked once, and again when one is not among them.
func NewScales(config *rest.Config) (*APIScales, error) {
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = "", "" // of custom resources there is only JSON
	client, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("create discovery client: %w", err)
	}
	cached := memory.NewMemCacheClient(client)
	s := &APIScales{mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}
	s.client, err = scale.NewForConfig(rest.CopyConfig(c), s.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cached))
	if err != nil {
		return nil, fmt.Errorf("create scale client: %w", err)
	}
	return s, nil
}

// Selector is part of Scales.
func (s *APIScales) Selector(ctx context.Context, namespace, apiVersion, kind, name string) (labels.Selector, error) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("parse the target's apiVersion: %w", err)
	}
	mapping, err := s.mapper.RESTMappingWithContext(ctx, schema.GroupKind{Group: gv.Group, Kind: kind})
	if meta.IsNoMatchError(err) && s.mayDiscover(time.Now()) {
		s.mapper.ResetWithContext(ctx)
		mapping, err = s.mapper.RESTMappingWithContext(ctx, schema.GroupKind{Group: gv.Group, Kind: kind})
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", kind, err)
	}
	got, err := s.client.Scales(namespace).Get(ctx, mapping.Resource.GroupResource(), name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get the scale of %s %s: %w", kind, name, err)
	}
	return parseSelector(got.Status.Selector)
}

// mayDiscover reports whether enough time has passed since it last did.
func (s *APIScales) mayDiscover(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.mu.discovered) < rediscover {
		return false
	}
	s.mu.discovered = now
	return true
}

// errNoSelector is that of a scale which does not tell its pods. An empty selector
// would match every pod of the namespace.
var errNoSelector = errors.New("the scale has no selector: a custom resource needs labelSelectorPath")

func parseSelector(text string) (labels.Selector, error) {
	if text == "" {
		return nil, errNoSelector
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse the scale's selector: %w", err)
	}
	if selector.Empty() {
		return nil, errNoSelector
	}
	return selector, nil
}
