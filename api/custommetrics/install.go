package custommetrics

import (
	"errors"
	"fmt"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	storage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/custom_metrics"
)

// Install serves custom.metrics.k8s.io from p with s, in every version of the library. The
// library's own installer would start another server, and leaves the API out of aggregated
// discovery, so that kube-aggregator considers it stale.
func Install(s *genericserver.GenericAPIServer, p provider.CustomMetricsProvider) error {
	info := genericserver.NewDefaultAPIGroupInfo(custom_metrics.GroupName, apiserver.Scheme, runtime.NewParameterCodec(apiserver.Scheme), apiserver.Codecs)
	if len(info.PrioritizedVersions) == 0 {
		return errors.New("install custom metrics: the library knows no version")
	}
	container := s.Handler.GoRestfulContainer
	group := metav1.APIGroup{Name: custom_metrics.GroupName}
	store, lister := storage.NewREST(p), provider.NewCustomMetricResourceLister(p)
	// The library prefers the oldest, which calls windowSeconds "window".
	versions := slices.SortedFunc(slices.Values(info.PrioritizedVersions), func(a, b schema.GroupVersion) int {
		return apiversion.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	for _, version := range versions {
		api := &installer.MetricsAPIGroupVersion{
			APIGroupVersion: &endpoints.APIGroupVersion{
				Root:             genericserver.APIGroupPrefix,
				GroupVersion:     version,
				MetaGroupVersion: info.MetaGroupVersion,
				ParameterCodec:   info.ParameterCodec,
				Serializer:       info.NegotiatedSerializer,
				Creater:          info.Scheme, //nolint:misspell // the library spells it so
				Convertor:        info.Scheme,
				UnsafeConvertor:  runtime.UnsafeObjectConvertor(info.Scheme),
				Typer:            info.Scheme,
				Namer:            runtime.Namer(meta.NewAccessor()),
			},
			DynamicStorage: store,
			ResourceLister: lister,
			Handlers:       &installer.CMHandlers{},
		}
		if err := api.InstallREST(container); err != nil {
			return fmt.Errorf("install %v: %w", version, err)
		}
		resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(lister.ListAPIResources())
		if err != nil {
			return fmt.Errorf("describe %v: %w", version, err)
		}
		s.AggregatedDiscoveryGroupManager.AddGroupVersion(version.Group, apidiscovery.APIVersionDiscovery{
			Version: version.Version, Resources: resources, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
		})
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
	}
	group.PreferredVersion = group.Versions[0]
	s.DiscoveryGroupManager.AddGroup(group)
	container.Add(discovery.NewAPIGroupHandler(s.Serializer, group).WebService())
	return nil
}
