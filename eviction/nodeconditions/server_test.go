package nodeconditions

import (
	"context"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/weir-metrics/weir/test/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// nodes stores one Node in a real API server, which merges patches.
type nodes struct {
	mu      sync.Mutex
	node    *corev1.Node
	version int
	writes  int
	// before is called before each update, with the new state of the Node.
	before func(*corev1.Node) error
}

func (n *nodes) put(node *corev1.Node) {
	n.version++
	node.ResourceVersion = strconv.Itoa(n.version)
	n.node = node
}

func (n *nodes) now() *corev1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node.DeepCopy()
}

func (n *nodes) New() runtime.Object     { return &corev1.Node{} }
func (n *nodes) Destroy()                {}
func (n *nodes) NamespaceScoped() bool   { return false }
func (n *nodes) GetSingularName() string { return "node" }

func (n *nodes) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	node := n.now()
	if name != node.Name {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	return node, nil
}

func (n *nodes) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o, err := info.UpdatedObject(ctx, n.node.DeepCopy())
	if err != nil {
		return nil, false, err
	}
	to := o.(*corev1.Node)
	if n.before != nil {
		if err := n.before(to); err != nil {
			return nil, false, err
		}
	}
	if v := to.ResourceVersion; v != "" && v != n.node.ResourceVersion {
		return nil, false, apierrors.NewConflict(corev1.Resource("nodes"), name, nil)
	}
	n.writes++
	n.put(to.DeepCopy())
	return n.node.DeepCopy(), false, nil
}

// serve starts an API server with a Node.
func serve(t *testing.T, node *corev1.Node) (*nodes, kubernetes.Interface) {
	t.Helper()
	n := &nodes{}
	n.put(node)
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	internal := schema.GroupVersion{Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &corev1.Node{})
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config := apitest.Serve(t, scheme, definitions, func(s *genericapiserver.GenericAPIServer) error {
		return s.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, &genericapiserver.APIGroupInfo{
			PrioritizedVersions:          []schema.GroupVersion{corev1.SchemeGroupVersion},
			VersionedResourcesStorageMap: map[string]map[string]rest.Storage{"v1": {"nodes": n, "nodes/status": n}},
			OptionsExternalVersion:       &corev1.SchemeGroupVersion,
			Scheme:                       scheme,
			ParameterCodec:               runtime.NewParameterCodec(scheme),
			NegotiatedSerializer:         serializer.NewCodecFactory(scheme),
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return n, client
}

// definitions has the OpenAPI definitions that the server needs.
func definitions(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return map[string]common.OpenAPIDefinition{
		corev1.Node{}.OpenAPIModelName(): {Schema: spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}},
	}
}
