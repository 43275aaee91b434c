// Package metricsgroup is the common part of custom.metrics.k8s.io and external.metrics.k8s.io: the
// installation of their protocol library on a server, errors with a status, warnings, and which files
// their configuration may name.
package metricsgroup

import (
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
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/installer"
)

// Changing is a provider whose list of metrics changes.
type Changing interface {
	// OnListChange calls do now and after each change of the list.
	OnListChange(do func())
}

// Install serves a group of the library with s, in all its versions. The caller sets the storage,
// the lister and the handlers of api. Aggregated discovery has the resources of the lister; if
// metrics is Changing, it follows the changes.
//
// The library's own installer would start another server. It also leaves the API out of aggregated
// discovery, so that kube-aggregator considers it stale.
func Install(s *genericserver.GenericAPIServer, name string, metrics any, api installer.MetricsAPIGroupVersion) error {
	info := genericserver.NewDefaultAPIGroupInfo(name, apiserver.Scheme, runtime.NewParameterCodec(apiserver.Scheme), apiserver.Codecs)
	container := s.Handler.GoRestfulContainer
	group := metav1.APIGroup{Name: name}
	// The library prefers the oldest version, and the oldest version of custom metrics calls
	// windowSeconds "window".
	versions := slices.SortedFunc(slices.Values(info.PrioritizedVersions), func(a, b schema.GroupVersion) int {
		return apiversion.CompareKubeAwareVersionStrings(b.Version, a.Version)
	})
	for _, version := range versions {
		api.APIGroupVersion = &endpoints.APIGroupVersion{
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
		}
		if err := api.InstallREST(container); err != nil {
			return fmt.Errorf("install %v: %w", version, err)
		}
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version})
	}
	group.PreferredVersion = group.Versions[0]
	s.DiscoveryGroupManager.AddGroup(group)
	container.Add(discovery.NewAPIGroupHandler(s.Serializer, group).WebService())
	announce := func() error {
		resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(api.ResourceLister.ListAPIResources())
		if err != nil {
			return fmt.Errorf("describe %s: %w", name, err)
		}
		for _, version := range versions {
			s.AggregatedDiscoveryGroupManager.AddGroupVersion(name, apidiscovery.APIVersionDiscovery{
				Version: version.Version, Resources: resources, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
			})
		}
		return nil
	}
	if changing, ok := metrics.(Changing); ok {
		changing.OnListChange(func() { _ = announce() }) // it fails only for subresources of subresources
	}
	return announce()
}

// WithoutRepeated returns all without those that are equal to an earlier one.
func WithoutRepeated[T comparable](all []T) []T {
	seen := make(map[T]bool, len(all))
	kept := make([]T, 0, len(all))
	for _, one := range all {
		if !seen[one] {
			seen[one] = true
			kept = append(kept, one)
		}
	}
	return kept
}
