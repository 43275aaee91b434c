package resourcemetrics

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// NewScheme returns the types of the API, for the server that describes them:
// a definition namer needs it beside OpenAPIDefinitions. It fails only if the
// library contradicts itself.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("add the types of %v: %w", v1beta1.SchemeGroupVersion, err)
	}
	err := scheme.AddFieldLabelConversionFunc(v1beta1.SchemeGroupVersion.WithKind("NodeMetrics"), nodeField)
	if err != nil {
		return nil, fmt.Errorf("add the fields of nodes: %w", err)
	}
	return scheme, nil
}

// nodeField says which fields of nodes a selector may name. Those of pods are
// what every namespaced object has.
func nodeField(label, value string) (string, string, error) {
	if label != metav1.ObjectNameField {
		return "", "", fmt.Errorf("%q is not a field that nodes can be selected by: only %q is", label, metav1.ObjectNameField)
	}
	return label, value, nil
}

// Install makes s serve metrics.k8s.io/v1beta1. The server's OpenAPI
// configuration must have OpenAPIDefinitions among its definitions.
func Install(s *genericapiserver.GenericAPIServer, o Options) error {
	if o.View == nil {
		return errors.New("install metrics.k8s.io: Options.View is missing")
	}
	scheme, err := NewScheme()
	if err != nil {
		return fmt.Errorf("install metrics.k8s.io: %w", err)
	}
	ages, err := newFreshness(o.Registerer)
	if err != nil {
		return fmt.Errorf("install metrics.k8s.io: %w", err)
	}
	api := &api{options: o.withDefaults(), ages: ages, rolls: newRolls()}
	nodes, pods := &nodeStorage{api}, &podStorage{api}
	info := genericapiserver.APIGroupInfo{
		PrioritizedVersions: []schema.GroupVersion{v1beta1.SchemeGroupVersion},
		VersionedResourcesStorageMap: map[string]map[string]rest.Storage{
			v1beta1.SchemeGroupVersion.Version: {
				"nodes": nodes,
				"pods":  pods,
			},
		},
		OptionsExternalVersion: &schema.GroupVersion{Version: "v1"},
		Scheme:                 scheme,
		ParameterCodec:         metav1.ParameterCodec,
		// The library's default group would encode CBOR only with a feature gate
		// that is about storage too.
		NegotiatedSerializer: serializer.NewCodecFactory(scheme,
			serializer.WithStreamingCollectionEncodingToJSON(),
			serializer.WithStreamingCollectionEncodingToProtobuf(),
			serializer.WithSerializer(cbor.NewSerializerInfo),
		),
	}
	if err := s.InstallAPIGroup(&info); err != nil {
		return fmt.Errorf("install metrics.k8s.io: %w", err)
	}
	straight := newDirect(pods, nodes, info.NegotiatedSerializer)
	for _, service := range s.Handler.GoRestfulContainer.RegisteredWebServices() {
		if service.RootPath() == "/apis/"+groupVersion {
			service.Filter(straight.filter)
		}
	}
	return nil
}
