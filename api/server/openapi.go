package server

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/common"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
)

// describe makes the server describe itself in OpenAPI v2 and v3. The types of
// discovery and errors are always among the definitions.
func describe(g *genericapiserver.Config, c Config) {
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

// newScheme returns the types that the server speaks itself: errors and
// discovery. Each API has its own beside them.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, v1)
	s.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}

// ownVersion makes /version tell weir's version; which features of the library
// are on still goes by the library's.
type ownVersion struct {
	basecompatibility.EffectiveVersion
	info version.Info
}

// Info is part of basecompatibility.EffectiveVersion.
func (v ownVersion) Info() *version.Info { return &v.info }
