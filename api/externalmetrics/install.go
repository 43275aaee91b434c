package externalmetrics

import (
	"errors"
	"fmt"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	storage "sigs.k8s.io/custom-metrics-apiserver/pkg/registry/external_metrics"
)

// Install serves external.metrics.k8s.io from p with s. Discovery follows changes of the rules.
// The library's own installer would start another server, and leaves the API out of aggregated
// discovery, so that kube-aggregator considers it stale.
func Install(s *genericserver.GenericAPIServer, p *Provider) error {
	info := genericserver.NewDefaultAPIGroupInfo(external_metrics.GroupName, apiserver.Scheme, metav1.ParameterCodec, apiserver.Codecs)
	if len(info.PrioritizedVersions) == 0 {
		return errors.New("install external metrics: the library knows no version")
	}
	version := info.PrioritizedVersions[0]
	lister := provider.NewExternalMetricResourceLister(p)
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
		DynamicStorage: storage.NewREST(p),
		ResourceLister: lister,
		Handlers:       &installer.EMHandlers{},
	}
	container := s.Handler.GoRestfulContainer
	if err := api.InstallREST(container); err != nil {
		return fmt.Errorf("install %v: %w", version, err)
	}
	group := metav1.APIGroup{
		Name:             version.Group,
		Versions:         []metav1.GroupVersionForDiscovery{{GroupVersion: version.String(), Version: version.Version}},
		PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version},
	}
	s.DiscoveryGroupManager.AddGroup(group)
	container.Add(discovery.NewAPIGroupHandler(s.Serializer, group).WebService())
	p.onRulesChange(func() {
		// It fails only for subresources, and a rule's name has no slash.
		if resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(lister.ListAPIResources()); err == nil {
			s.AggregatedDiscoveryGroupManager.AddGroupVersion(version.Group, apidiscovery.APIVersionDiscovery{
				Version: version.Version, Resources: resources, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
			})
		}
	})
	return nil
}
