package custommetrics

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	generatedcore "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
	generated "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The generic server starts these and has no way to stop them.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/filters.(*requestWatermark).tick"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
	)
}

func definitions(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
	all := generated.GetOpenAPIDefinitions(ref)
	for name, d := range generatedcore.GetOpenAPIDefinitions(ref) {
		all[name] = d
	}
	return all
}

// serve starts a real API server with the custom metrics of w, and returns how
// to reach it.
func serve(t *testing.T, w *world) *rest.Config {
	t.Helper()
	config := genericserver.NewConfig(apiserver.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "weir.test:443"
	config.LoopbackClientConfig = &rest.Config{}
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	config.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(definitions, namer)
	server, err := config.Complete(nil).New("test", genericserver.NewEmptyDelegate())
	if err != nil {
		t.Fatalf("make a server: %v", err)
	}
	t.Cleanup(server.Destroy)
	if err := Install(server, New(w.options())); err != nil {
		t.Fatal(err)
	}
	server.PrepareRun()
	front := httptest.NewServer(server.Handler)
	t.Cleanup(front.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &rest.Config{Host: front.URL, Transport: transport, QPS: -1}
}

// warnings collects what a client is warned of.
type warnings struct {
	mu struct {
		sync.Mutex
		texts []string
	}
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.texts = append(w.mu.texts, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.mu.texts
	w.mu.texts = nil
	return texts
}

// client returns the client that kube-controller-manager's autoscaler uses; it
// learns the version from the server.
func client(t *testing.T, config *rest.Config) (custom_metrics.CustomMetricsClient, *warnings) {
	t.Helper()
	w := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandler = w
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return custom_metrics.NewForConfig(config, mapper(), custom_metrics.NewAvailableAPIsGetter(d)), w
}

func mapper() meta.RESTMapper {
	v1, apps := schema.GroupVersion{Version: "v1"}, schema.GroupVersion{Group: "apps", Version: "v1"}
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1, apps})
	m.Add(v1.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(v1.WithKind("Node"), meta.RESTScopeRoot)
	m.Add(v1.WithKind("Namespace"), meta.RESTScopeRoot)
	m.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	return m
}
