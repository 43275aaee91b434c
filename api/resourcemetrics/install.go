package resourcemetrics

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/metrics"
	metricsv1 "k8s.io/metrics/pkg/apis/metrics/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/cluster/podindex"
	"github.com/weir-metrics/weir/cluster/resourceusage"
	"github.com/weir-metrics/weir/explain"
	"github.com/weir-metrics/weir/metric"
)

// UsageReader reads one immutable snapshot: samples, and the verdicts on missing
// numbers.
type UsageReader interface {
	explain.SnapshotReader
	// At returns when the newest number in the snapshot was read; zero if there is none.
	At() time.Time
	// Each calls do for the sample of every entity of a kind that has a number to serve, parts
	// included, in the order of metric.Entity.Compare, until do returns false. The sample is
	// valid until do returns.
	Each(kind metric.Kind, do func(*metric.Sample) bool)
	// EachPodUsage calls do once for every pod that was measured completely, the pods of a node
	// together, until do returns false. u is valid until do returns.
	EachPodUsage(do func(u *resourceusage.PodUsage) bool)
	// PodUsage fills u with what EachPodUsage returns for one pod. It reuses the memory of u.
	// It returns false if EachPodUsage does not return the pod.
	PodUsage(pod metric.PodRef, u *resourceusage.PodUsage) bool
	// NodeUsage returns the usage of a node and its window. ok is false unless the node was
	// measured completely.
	NodeUsage(node metric.NodeName) (u resourceusage.Usage, over metric.Window, ok bool)
}

// Options are the sources of the answers.
type Options struct {
	// Snapshot returns the newest snapshot; nil before there is one. Required.
	Snapshot func() UsageReader
	// Facts returns the cluster facts; nil if there is no API server. Required.
	Facts func() *cluster.Facts
	// Sources returns the state of the sources, for the reasons of missing numbers. Required.
	Sources func() []explain.SourceState
	// Registerer registers the metrics of this API. Default: none.
	Registerer prometheus.Registerer
	// Now returns the time. Default time.Now.
	Now func() time.Time
}

// versions are the versions of the API, the preferred one first. They differ only in their name.
var versions = []schema.GroupVersion{metricsv1.SchemeGroupVersion, v1beta1.SchemeGroupVersion}

// NewScheme returns the types of the API. The server's OpenAPI configuration needs them for a
// definition namer, besides OpenAPIDefinitions. An error means that the library contradicts
// itself.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{metrics.AddToScheme, metricsv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("add the types of %s: %w", metrics.GroupName, err)
		}
	}
	return scheme, nil
}

// Install makes s serve metrics.k8s.io in all its versions. The server's OpenAPI configuration must have OpenAPIDefinitions among its definitions.
func Install(s *genericapiserver.GenericAPIServer, o Options) error {
	if o.Snapshot == nil {
		return errors.New("install metrics.k8s.io: Options.Snapshot is missing")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	scheme, err := NewScheme()
	if err != nil {
		return fmt.Errorf("install metrics.k8s.io: %w", err)
	}
	ages := promauto.With(o.Registerer).NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_api_metric_freshness_seconds",
		Help: "Age of the numbers that metrics.k8s.io served, by resource, at the time of the answer.",
		// From one second to five minutes, as in metrics-server.
		Buckets: prometheus.ExponentialBuckets(1, 1.364, 20),
	}, []string{"resource"})
	api := &resourceAPI{options: o, orders: newPodOrderCache(), index: podindex.New()}
	storages := map[string]*storage{}
	resources := map[string]rest.Storage{}
	for _, kind := range []objectKind{nodeKind, podKind} {
		s := &storage{resourceAPI: api, kind: kind, ages: ages.WithLabelValues(kind.resource)}
		storages[kind.resource], resources[kind.resource] = s, s
	}
	byVersion := map[string]map[string]rest.Storage{}
	for _, version := range versions {
		byVersion[version.Version] = resources
	}
	info := genericapiserver.APIGroupInfo{
		PrioritizedVersions:          versions,
		VersionedResourcesStorageMap: byVersion,
		OptionsExternalVersion:       &schema.GroupVersion{Version: "v1"},
		Scheme:                       scheme,
		ParameterCodec:               metav1.ParameterCodec,
		// The library's default group encodes CBOR only with a feature gate that also affects
		// storage.
		NegotiatedSerializer: serializer.NewCodecFactory(scheme,
			serializer.WithStreamingCollectionEncodingToJSON(),
			serializer.WithStreamingCollectionEncodingToProtobuf(),
			serializer.WithSerializer(cbor.NewSerializerInfo),
		),
	}
	if err := s.InstallAPIGroup(&info); err != nil {
		return fmt.Errorf("install metrics.k8s.io: %w", err)
	}
	straight := newDirectHandler(storages, info.NegotiatedSerializer)
	for _, service := range s.Handler.GoRestfulContainer.RegisteredWebServices() {
		for _, version := range versions {
			if service.RootPath() == "/apis/"+version.String() {
				service.Filter(straight.filter)
			}
		}
	}
	return nil
}

// resourceAPI is the data that both resources share.
type resourceAPI struct {
	options Options
	orders  *podOrderCache
	index   *podindex.Index
}

// retryAfter is how many seconds a client should wait before it asks again. client-go asks ten
// times.
const retryAfter = 1

// newReader returns the reader of one request, or an error with status 503 if there is no data
// yet.
func (a *resourceAPI) newReader() (*usageReader, error) {
	facts := a.options.Facts()
	if facts != nil && !facts.Synced {
		return nil, unavailable("the API server has not listed pods and nodes yet")
	}
	view := a.options.Snapshot()
	if view == nil || view.At().IsZero() {
		if facts == nil || facts.Nodes() > 0 {
			return nil, unavailable("weir has just started and has read no node yet")
		}
		view = nil
	}
	return &usageReader{view: view, facts: facts, options: &a.options, orders: a.orders, index: a.index}, nil
}

// unavailable returns an error with status 503, after which client-go asks again.
func unavailable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: message,
		Details: &metav1.StatusDetails{Group: metrics.GroupName, RetryAfterSeconds: retryAfter},
	}}
}

// notFound returns the error for an object that the API server does not have, with the API
// server's text: `pods "a" not found`.
func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// notServed returns the error for an object that exists and is not served:
// `podmetrics.metrics.k8s.io "a" not found: the pod has not started (PodPending)`.
func notServed(resource, name string, outcome explain.Outcome) error {
	err := apierrors.NewNotFound(metrics.Resource(resource), name)
	words := outcome.ShortMessage()
	err.ErrStatus.Message += ": " + words
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(outcome.Reason.String()), Message: words}}
	return err
}
