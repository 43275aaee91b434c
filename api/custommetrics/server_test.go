package custommetrics

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	generated "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/custommetrics"

	"github.com/weir-metrics/weir/test/apitest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// serve starts a real API server with the custom metrics of w, and returns the configuration of a
// client.
func serve(t *testing.T, w *fixture) *rest.Config {
	t.Helper()
	return apitest.Serve(t, apiserver.Scheme, generated.GetOpenAPIDefinitions, func(s *genericserver.GenericAPIServer) error {
		return Install(s, New(w.options()))
	})
}

// client returns the client that the autoscaler of kube-controller-manager uses. It finds the
// version by discovery.
func client(t *testing.T, config *rest.Config) (custom_metrics.CustomMetricsClient, *apitest.Warnings) {
	t.Helper()
	w := &apitest.Warnings{}
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
