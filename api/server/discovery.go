package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
)

// AnnouncedGroup is an API group that Handle serves, without storage of the library.
type AnnouncedGroup struct {
	schema.GroupVersion
	// Resources are the resources in the group's discovery. A subresource is called
	// "pods/explanation" and is namespaced if its resource is. Verbs are those of access reviews,
	// so that discovery describes what to grant.
	Resources []metav1.APIResource
}

// storageVerbs are verbs that make controllers act on every resource that has them. The namespace
// controller and garbage collection list and delete such resources, caches list and watch them. A
// resource that stores no objects must not have these verbs.
var storageVerbs = []string{"delete", "deletecollection", "patch", "update", "watch"}

// Announce adds a group to discovery, plain and aggregated. An aggregating API server then finds
// the group available, and clients learn its resources. Announce serves nothing else; Handle does.
// Call it before Run, once for each group.
func (s *Server) Announce(g AnnouncedGroup) error {
	if err := g.check(); err != nil {
		return fmt.Errorf("announce %s: %w", g.GroupVersion, err)
	}
	resources := slices.Clone(g.Resources)
	for i := range resources {
		resources[i].Group, resources[i].Version = g.Group, g.Version
	}
	aggregated, err := endpoints.ConvertGroupVersionIntoToDiscovery(resources)
	if err != nil {
		return fmt.Errorf("announce %s: %w", g.GroupVersion, err)
	}
	s.generic.AggregatedDiscoveryGroupManager.AddGroupVersion(g.Group, apidiscovery.APIVersionDiscovery{
		Version: g.Version, Resources: aggregated, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
	})
	version := metav1.GroupVersionForDiscovery{GroupVersion: g.String(), Version: g.Version}
	group := metav1.APIGroup{Name: g.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	s.generic.DiscoveryGroupManager.AddGroup(group)

	// An aggregating API server requests the second path to check that the server is there.
	mux, serializer := s.generic.Handler.NonGoRestfulMux, s.generic.Serializer
	lister := discovery.APIResourceListerFunc(func() []metav1.APIResource { return resources })
	mux.Handle("/apis/"+g.Group, discovery.NewAPIGroupHandler(serializer, group))
	mux.Handle("/apis/"+g.String(), discovery.NewAPIVersionHandler(serializer, g.GroupVersion, lister))
	return nil
}

// check returns an error if a group would mislead clients.
func (g *AnnouncedGroup) check() error {
	if g.Group == "" || g.Version == "" {
		return errors.New("a group needs a name and a version")
	}
	kinds := map[string]string{}
	for i := range g.Resources {
		r := &g.Resources[i]
		switch {
		case r.Name == "" || r.Kind == "" || len(r.Verbs) == 0:
			return fmt.Errorf("resource %q needs a name, a kind and verbs", r.Name)
		case slices.ContainsFunc(r.Verbs, func(v string) bool { return slices.Contains(storageVerbs, v) }):
			return fmt.Errorf("resource %q has verbs %v: it must have none of %v, because controllers would use them", r.Name, r.Verbs, storageVerbs)
		case slices.Contains(r.Verbs, "create") && len(r.Verbs) > 1: // create alone is a question, as for a TokenReview
			return fmt.Errorf("resource %q has verbs %v: back-up tools would treat a resource that can be read and created as stored objects", r.Name, r.Verbs)
		case strings.Contains(r.Name, "/"):
			continue
		}
		// Clients look for the resource of a kind.
		if other, taken := kinds[r.Kind]; taken {
			return fmt.Errorf("resources %q and %q share the kind %s", other, r.Name, r.Kind)
		}
		kinds[r.Kind] = r.Name
	}
	return nil
}

// configureOpenAPI makes the server describe itself in OpenAPI v2 and v3. The definitions always
// include the types of discovery and errors.
func configureOpenAPI(g *genericapiserver.Config, c Config) {
	sources := append([]common.GetOpenAPIDefinitions{core.GetOpenAPIDefinitions}, c.OpenAPI...)
	all := func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		definitions := map[string]common.OpenAPIDefinition{}
		for _, source := range sources {
			maps.Copy(definitions, source(ref))
		}
		return definitions
	}
	namer := openapi.NewDefinitionNamer(append([]*runtime.Scheme{newScheme()}, c.Schemes...)...)
	g.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(all, namer)
	g.OpenAPIConfig.Info.Title = "weir"
	g.OpenAPIConfig.Info.Version = c.Version.GitVersion
	g.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(all, namer)
	g.OpenAPIV3Config.Info.Title = "weir"
	g.OpenAPIV3Config.Info.Version = c.Version.GitVersion
}

// newScheme returns the types that the server itself writes: errors and discovery. Each API also
// has its own scheme.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, v1)
	s.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}

// ownVersion makes /version report weir's version. The library's version still decides which
// features of the library are on.
type ownVersion struct {
	basecompatibility.EffectiveVersion
	info version.Info
}

// Info implements basecompatibility.EffectiveVersion.
func (o ownVersion) Info() *version.Info { return &o.info }
